"""A day of the platform on one page: self-contained HTML, readable on paper, in the dark and by a screen reader."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from html import escape

import msgspec

from snavio.spark.charts import Series, bars, legend, lines, milliseconds, short, stacked_columns
from snavio.spark.reports import Prices
from snavio.spark.style import STYLE

_HOUR = 3_600
_CLOCK = [f"{hour:02d}" for hour in range(24)]
_SCREENFUL = 15


class Hour(msgspec.Struct, frozen=True):
    """The platform in one hour."""

    window: int
    fast: int
    slow: int
    rejected: int
    p50: float | None
    p95: float | None
    p99: float | None


class Use(msgspec.Struct, frozen=True):
    """A tenant's day."""

    tenant: str
    commands: int
    fast: int
    slow: int
    rejected: int
    p50: float | None
    p95: float | None
    p99: float | None
    cost_usd: float


class Served(msgspec.Struct, frozen=True):
    """The day of a (target, command)."""

    target: str
    command: str
    fast: int
    slow: int
    rejected: int
    p50: float | None
    p95: float | None
    p99: float | None


class Failure(msgspec.Struct, frozen=True):
    """Rejections for one reason."""

    reason: str
    count: int


class Abuse(msgspec.Struct, frozen=True):
    """A source found to dominate in one ban window."""

    window: int
    source: str
    targets: list[str]
    violations: int
    until: int
    """Where its ban ends, or would have, had it been found in time."""


class Silence(msgspec.Struct, frozen=True):
    """What of a worker's windows is lost; see `reports.silences`."""

    worker: str
    service: str
    window: int
    windows: int
    kind: str


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """Everything the page shows."""

    day: str
    made_at: float
    prices: Prices
    hours: Sequence[Hour]
    usage: Sequence[Use]
    services: Sequence[Served]
    failures: Sequence[Failure]
    abuse: Sequence[Abuse]
    silences: Sequence[Silence]
    more_silences: int
    items: int
    malformed: int


def page(report: Report) -> str:
    """The page."""
    sections = (
        _tiles(report),
        _pair(_volume(report), _latency(report)),
        _pair(_busiest(report), _failures(report)),
        _tenants(report),
        _served(report),
        _fairness(report),
        _feed(report),
    )
    made = datetime.fromtimestamp(report.made_at, UTC).strftime("%Y-%m-%d %H:%M:%S")
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>Snavio, {report.day}</title><style>{STYLE}</style></head><body>"
        f"<header><h1>Snavio</h1><p>{report.day}, midnight to midnight UTC</p></header><main>{''.join(sections)}</main>"
        f"<footer>Made {made} UTC from {short(report.items)} items of the fairness feed. Sums are exact; latencies are"
        " within 5 %. Data that comes late makes this page again.</footer></body></html>"
    )


def _tiles(report: Report) -> str:
    dispatched = sum(h.fast + h.slow for h in report.hours)
    fast = sum(h.fast for h in report.hours)
    rejected = sum(h.rejected for h in report.hours)
    worst = max((h.p99 for h in report.hours if h.p99 is not None), default=None)
    cost = sum(u.cost_usd for u in report.usage)
    handled = dispatched + rejected
    tiles = [
        ("commands delivered", short(dispatched), f"{_percent(fast, dispatched)} on the fast path"),
        ("rejected", short(rejected), f"{_percent(rejected, handled)} of all commands"),
        ("p99 latency, worst hour", milliseconds(worst), "from sent to delivered"),
        ("tenants", str(len(report.usage)), f"{len(stretches(report.abuse))} cases of dominance"),
        (
            "cost",
            f"${cost:,.2f}",
            f"${cost / handled * 1e6:,.2f} a million commands" if handled else "no commands",
        ),
    ]
    cards = "".join(
        f'<div class="tile"><span>{escape(name)}</span><strong>{escape(value)}</strong><small>{escape(note)}</small></div>'
        for name, value, note in tiles
    )
    return f'<section class="tiles">{cards}</section>'


def _by_hour(report: Report) -> list[Hour | None]:
    known = {hour.window: hour for hour in report.hours}
    start = int(datetime.fromisoformat(report.day).replace(tzinfo=UTC).timestamp())
    return [known.get(start + i * _HOUR) for i in range(24)]


def _volume(report: Report) -> str:
    hours = _by_hour(report)
    series = [
        Series("fast", "fast", [h.fast if h else 0 for h in hours]),
        Series("slow", "slow", [h.slow if h else 0 for h in hours]),
        Series("rejected", "bad", [h.rejected if h else 0 for h in hours]),
    ]
    return _section(
        "Commands an hour", legend(series) + stacked_columns(_CLOCK, series, title="Commands by hour")
    )


def _latency(report: Report) -> str:
    hours = _by_hour(report)
    series = [
        Series("p50", "p50", [h.p50 if h else None for h in hours]),
        Series("p95", "p95", [h.p95 if h else None for h in hours]),
        Series("p99", "p99", [h.p99 if h else None for h in hours]),
    ]
    return _section("Latency by hour", legend(series) + lines(_CLOCK, series, title="Latency by hour"))


def _busiest(report: Report) -> str:
    top = [(u.tenant, float(u.commands), short(u.commands)) for u in report.usage[:8]]
    return _section("Busiest tenants", bars(top, style="fast", title="Busiest tenants"))


def _tenants(report: Report) -> str:
    rows = [
        [
            escape(u.tenant),
            f"{u.commands:,}",
            f"{u.fast:,}",
            f"{u.slow:,}",
            f"{u.rejected:,}",
            _percent(u.rejected, u.commands),
            *(milliseconds(value) for value in (u.p50, u.p95, u.p99)),
            f"${u.cost_usd:,.4f}",
        ]
        for u in report.usage
    ]
    prices = report.prices
    note = (
        f"<p class=note>Cost: ${prices.fast:.2f} a million fast, ${prices.slow:.2f} slow, ${prices.rejected:.2f} rejected,"
        f" and ${prices.fixed_a_day:.2f} a day shared by use.</p>"
    )
    heads = ["tenant", "commands", "fast", "slow", "rejected", "%", "p50", "p95", "p99", "cost"]
    return _section("Usage and cost by tenant", _table(heads, rows) + note)


def _served(report: Report) -> str:
    rows = [
        [
            escape(s.target),
            escape(s.command),
            f"{s.fast:,}",
            f"{s.slow:,}",
            f"{s.rejected:,}",
            *(milliseconds(value) for value in (s.p50, s.p95, s.p99)),
        ]
        for s in report.services
    ]
    heads = ["target", "command", "fast", "slow", "rejected", "p50", "p95", "p99"]
    return _section("Busiest targets", _table(heads, rows, words=2))


def _failures(report: Report) -> str:
    if not report.failures:
        return _section("Rejections by reason", "<p class=good>None.</p>")
    total = sum(f.count for f in report.failures)
    rows = [
        (f.reason, float(f.count), f"{short(f.count)} · {_percent(f.count, total)}") for f in report.failures
    ]
    return _section("Rejections by reason", bars(rows, style="bad", title="Rejections by reason"))


def _fairness(report: Report) -> str:
    if not report.abuse:
        return _section(
            "Fairness", "<p class=good>Nobody took more than a fair share of what others wanted.</p>"
        )
    rows = [
        [escape(a.source), escape(", ".join(a.targets)), str(a.violations), _clock(a.window), _clock(a.until)]
        for a in stretches(report.abuse)
    ]
    heads = ["source", "dominated", "violations", "from", "ban ends"]
    return _section("Fairness", _table(heads, rows, words=2) + _BANS)


_BANS = "<p class=note>Whoever was found after the ban would have ended, as after an outage, was not banned for it.</p>"


def stretches(found: Sequence[Abuse]) -> list[Abuse]:
    """Whoever dominates on while banned is told of once, from the first ban window to the end of the last ban."""
    told: list[Abuse] = []
    places: dict[str, int] = {}
    for one in sorted(found, key=lambda abuse: abuse.window):
        place = places.get(one.source)
        if place is not None and one.window <= told[place].until:
            was = told[place]
            targets = sorted({*was.targets, *one.targets})
            told[place] = Abuse(was.window, was.source, targets, was.violations + one.violations, one.until)
        else:
            places[one.source] = len(told)
            told.append(one)
    return told


def _feed(report: Report) -> str:
    if not report.silences and not report.malformed:
        return _section(
            "The feed", "<p class=good>Every worker reported every minute; every item could be read.</p>"
        )
    said = f"<p class=warn>{report.malformed} malformed items set aside.</p>" if report.malformed else ""
    rows = [
        [escape(s.worker), escape(s.service), _moment(s.window, report.day), _lost(s), _MEANING[s.kind]]
        for s in report.silences
    ]
    if rows:
        said += _table(["worker", "service", "window", "lost", "what happened"], rows, words=2)
        more = (
            f"<p class=warn>And {report.more_silences:,} more like these.</p>" if report.more_silences else ""
        )
        said += more + _CRASHES
    return _section("The feed", said)


_MEANING = {
    "crash": "fell silent after it without draining",
    "gap": "those after it never came",
    "partial": "parts of it never came",
}
_CRASHES = (
    "<p class=note>A worker that fell silent lost the window it had open; up to ten closed ones more if the store took no"
    " writes at the time.</p>"
)


def _lost(silence: Silence) -> str:
    if silence.kind == "partial":
        return "part of 1"
    return f"{silence.windows}{' or more' if silence.kind == 'crash' else ''}"


def _moment(at: int, day: str) -> str:
    """The time of day, with its date where that is not the page's."""
    date = datetime.fromtimestamp(at, UTC).date().isoformat()
    return _clock(at) if date == day else f"{date} {_clock(at)}"


def _section(title: str, body: str) -> str:
    return f"<section><h2>{escape(title)}</h2>{body}</section>"


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]], *, words: int = 1) -> str:
    """A table of cells that are already escaped; the first columns are words, the others numbers.

    What is more than a screenful is folded away.
    """

    def cells(kind: str, row: Sequence[str]) -> str:
        return "".join(
            f"<{kind}{'' if i < words else ' class=n'}>{cell}</{kind}>" for i, cell in enumerate(row)
        )

    def body(some: Sequence[Sequence[str]]) -> str:
        drawn = "".join(f"<tr>{cells('td', row)}</tr>" for row in some)
        return f'<div class="scroll"><table><thead><tr>{cells("th", heads)}</tr></thead><tbody>{drawn}</tbody></table></div>'

    rest = rows[_SCREENFUL:]
    more = f"<details><summary>{len(rest)} more</summary>{body(rest)}</details>" if rest else ""
    return body(rows[:_SCREENFUL]) + more


def _pair(left: str, right: str) -> str:
    return f'<div class="pair">{left}{right}</div>'


def _percent(part: float, whole: float) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "-"


def _clock(at: int) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%H:%M")
