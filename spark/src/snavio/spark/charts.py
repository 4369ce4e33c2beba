"""Plots as inline SVG: text in, text out, no scripts and nothing to fetch. Colours come from the page's style."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

import msgspec

WIDTH = 540
"""Half a page: text in a plot is then as large as text around it."""
_LEFT, _RIGHT, _TOP, _BOTTOM = 56, 12, 12, 26


class Series(msgspec.Struct, frozen=True):
    """Values of one kind, drawn in the style of this class; None where there was nothing to measure."""

    name: str
    style: str
    values: Sequence[float | None]


def stacked_columns(labels: Sequence[str], series: Sequence[Series], *, height: int = 240, title: str) -> str:
    """Columns of parts that add up to a whole."""
    totals = [sum(s.values[i] or 0 for s in series) for i in range(len(labels))]
    ticks = _linear_ticks(max(totals, default=0))
    top = ticks[-1] or 1
    floor, scale = height - _BOTTOM, (height - _TOP - _BOTTOM) / top
    step = (WIDTH - _LEFT - _RIGHT) / max(1, len(labels))
    body = [_grid(floor - tick * scale, short(tick)) for tick in ticks]
    for i, label in enumerate(labels):
        x, y = _LEFT + i * step, floor
        body.append(f"<g><title>{escape(label)}: {_parts(series, i)}</title>")
        for one in series:
            tall = (one.values[i] or 0) * scale
            y -= tall
            if tall > 0:
                body.append(_rect(x + step * 0.14, y, step * 0.72, tall, one.style))
        body.append("</g>")
    body += _labels(labels, step)
    return _svg(body, height, title)


def lines(labels: Sequence[str], series: Sequence[Series], *, height: int = 240, title: str) -> str:
    """Lines over time on a logarithmic scale: latencies differ by factors, not by amounts."""
    known = [value for one in series for value in one.values if value]
    low = 10 ** math.floor(math.log10(min(known))) if known else 1.0
    high = 10 ** math.ceil(math.log10(max(known) * 1.0001)) if known else 10.0
    floor, tall = height - _BOTTOM, height - _TOP - _BOTTOM
    step = (WIDTH - _LEFT - _RIGHT) / max(1, len(labels))

    def y_of(value: float) -> float:
        return floor - tall * (math.log10(value) - math.log10(low)) / (math.log10(high) - math.log10(low))

    decades = round(math.log10(high / low))
    body = [_grid(y_of(low * 10**d), milliseconds(low * 10**d)) for d in range(decades + 1)]
    for one in series:
        points = [
            (_LEFT + (i + 0.5) * step, y_of(value), i, value)
            for i, value in enumerate(one.values)
            if value is not None
        ]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y, _, _ in points)
        body.append(f'<polyline class="line {one.style}" points="{path}"/>')
        body += [
            f'<circle class="{one.style}" cx="{x:.1f}" cy="{y:.1f}" r="2.6">'
            f"<title>{escape(labels[i])} {escape(one.name)}: {milliseconds(value)}</title></circle>"
            for x, y, i, value in points
        ]
    body += _labels(labels, step)
    return _svg(body, height, title)


def bars(rows: Sequence[tuple[str, float, str]], *, style: str, title: str) -> str:
    """Named amounts, the largest first, each with its own text at its end."""
    line, name_width, text_width = 26, 160, 104
    most = max((value for _, value, _ in rows), default=0) or 1
    body: list[str] = []
    for i, (name, value, text) in enumerate(rows):
        y = 4 + i * line
        wide = max(2.0, (WIDTH - name_width - text_width) * value / most)
        body += [
            f'<text class="name" x="{name_width - 10}" y="{y + 14}" text-anchor="end">{escape(_cut(name))}</text>',
            _rect(name_width, y + 2, wide, line - 9, style),
            f'<text x="{name_width + wide + 8:.1f}" y="{y + 14}">{escape(text)}</text>',
        ]
    return _svg(body, 8 + line * max(1, len(rows)), title)


def legend(series: Sequence[Series]) -> str:
    """Which colour is what."""
    return (
        '<p class="legend">'
        + "".join(f'<span><i class="{s.style}"></i>{escape(s.name)}</span>' for s in series)
        + "</p>"
    )


def short(value: float) -> str:
    """A number a person reads at a glance."""
    for size, suffix in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if abs(value) >= size:
            return f"{value / size:.3g}{suffix}"
    return f"{value:.3g}"


def milliseconds(value: float | None) -> str:
    """A latency, in the unit that suits it."""
    if value is None:
        return "-"
    return f"{value / 1000:.3g} s" if value >= 1000 else f"{value:.3g} ms"  # noqa: PLR2004 - a second


def _linear_ticks(most: float, count: int = 4) -> list[float]:
    if most <= 0:
        return [0.0, 1.0]
    raw = most / count
    size = 10 ** math.floor(math.log10(raw))
    step = next(size * factor for factor in (1, 2, 2.5, 5, 10) if size * factor >= raw)
    return [step * i for i in range(math.ceil(most / step - 1e-9) + 1)]


def _parts(series: Sequence[Series], i: int) -> str:
    return ", ".join(f"{escape(one.name)} {short(one.values[i] or 0)}" for one in series)


def _labels(labels: Sequence[str], step: float) -> list[str]:
    every = max(1, math.ceil(len(labels) / 12))
    return [
        f'<text x="{_LEFT + (i + 0.5) * step:.1f}" y="100%" dy="-8" text-anchor="middle">{escape(label)}</text>'
        for i, label in enumerate(labels)
        if i % every == 0
    ]


def _grid(y: float, text: str) -> str:
    return (
        f'<line class="grid" x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
        f'<text x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{escape(text)}</text>'
    )


def _rect(x: float, y: float, wide: float, tall: float, style: str) -> str:
    return f'<rect class="{style}" x="{x:.1f}" y="{y:.1f}" width="{wide:.1f}" height="{tall:.2f}" rx="1.5"/>'


def _cut(name: str, most: int = 21) -> str:
    return name if len(name) <= most else f"{name[: most - 1]}…"


def _svg(body: Sequence[str], height: int, title: str) -> str:
    return (
        f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(title)}" '
        f'xmlns="http://www.w3.org/2000/svg">{"".join(body)}</svg>'
    )
