"""The dashboards as code: a panel is a line here, and its metrics and labels are checked against those that exist."""

from __future__ import annotations

import json
import re
from typing import Any

from snavio.runtime.metrics import ALL

_SOURCE = {"type": "prometheus", "uid": "prometheus"}
_METRIC = re.compile(r"\{(Snavio\.[\w.]+)\}")
_BY = re.compile(r"by \(([^)]*)\)")
_WHERE = re.compile(r"\}\{(\w+)[=!]")
_WIDTH, _HEIGHT, _COLUMNS = 8, 8, 3

# title, unit, [(query, legend)]; `{Metric.Name}` stands for the metric as Prometheus has it, `[w]` for the window.
_COMMANDS = [
    ("Commands by outcome", "cps", [("sum by (outcome) (rate({Snavio.Commands}[w]))", "{{outcome}}")]),
    (
        "Latency, timestamp to delivery",
        "ms",
        [
            (
                f"histogram_quantile({q}, sum by (le, path) (rate({{Snavio.Commands.Latency}}_bucket[w])))",
                f"p{name} {{{{path}}}}",
            )
            for q, name in ((0.5, "50"), (0.95, "95"), (0.99, "99"))
        ],
    ),
    (
        "Escalations by reason",
        "cps",
        [("sum by (reason) (rate({Snavio.Commands.Escalations}[w]))", "{{reason}}")],
    ),
    (
        "Refused, by reason",
        "cps",
        [('sum by (reason) (rate({Snavio.Commands}{outcome=~"failed|invalid"}[w]))', "{{reason}}")],
    ),
    (
        "Over a limit",
        "cps",
        [
            ("sum by (path) (rate({Snavio.RateLimit.Rejected}[w]))", "{{path}}"),
            ("sum(rate({Snavio.RateLimit.Shadowed}[w]))", "shadow"),
        ],
    ),
    ("Signatures refused", "cps", [("sum by (reason) (rate({Snavio.Hmac.Failures}[w]))", "{{reason}}")]),
    (
        "Wait in queue, p95",
        "ms",
        [
            (
                "histogram_quantile(0.95, sum by (le, queue) (rate({Snavio.Queue.Latency}_bucket[w])))",
                "{{queue}}",
            )
        ],
    ),
    ("In hand", "short", [("sum by (queue) ({Snavio.Queue.InHand})", "{{queue}}")]),
    (
        "Queue calls that failed",
        "cps",
        [("sum by (queue, operation) (rate({Snavio.Queue.Faults}[w]))", "{{queue}} {{operation}}")],
    ),
    (
        "Telemetry lag, p95",
        "ms",
        [("histogram_quantile(0.95, sum by (le) (rate({Snavio.Outbox.Lag}_bucket[w])))", "outbox")],
    ),
    (
        "Use of remembered data",
        "cps",
        [
            (f"sum(rate({{Snavio.Cache.Usage.{phase}}}[w]))", phase.lower())
            for phase in ("Fresh", "Stale", "Expired")
        ],
    ),
    (
        "Bans and leases",
        "cps",
        [
            ("sum by (scope) (rate({Snavio.Fairness.Bans}[w]))", "ban {{scope}}"),
            ("sum by (outcome) (rate({Snavio.RateLimit.Leases}[w]))", "lease {{outcome}}"),
        ],
    ),
]


def commands_dashboard() -> str:
    """What happens to commands, as Grafana reads it."""
    return _dashboard("snavio-commands", "Snavio: commands", _COMMANDS)


def _dashboard(uid: str, title: str, panels: list[tuple[str, str, list[tuple[str, str]]]]) -> str:
    model = {
        "uid": uid,
        "title": title,
        "schemaVersion": 39,
        "refresh": "10s",
        "time": {"from": "now-30m", "to": "now"},
        "timezone": "utc",
        "panels": [_panel(number, *panel) for number, panel in enumerate(panels)],
    }
    return json.dumps(model, indent=2) + "\n"


def _panel(number: int, title: str, unit: str, targets: list[tuple[str, str]]) -> dict[str, Any]:
    return {
        "id": number + 1,
        "type": "timeseries",
        "title": title,
        "datasource": _SOURCE,
        "gridPos": {
            "x": number % _COLUMNS * _WIDTH,
            "y": number // _COLUMNS * _HEIGHT,
            "w": _WIDTH,
            "h": _HEIGHT,
        },
        "fieldConfig": {"defaults": {"unit": unit, "min": 0}, "overrides": []},
        "targets": [
            {
                "refId": chr(ord("A") + place),
                "datasource": _SOURCE,
                "expr": _query(query),
                "legendFormat": legend,
            }
            for place, (query, legend) in enumerate(targets)
        ],
    }


def _query(query: str) -> str:
    used = [ALL[name] for name in _METRIC.findall(query)]
    known = {"le"}.union(*(metric.attributes for metric in used))
    labels = {label.strip() for group in _BY.findall(query) for label in group.split(",")} | {
        *_WHERE.findall(query)
    }
    if labels - known:
        raise ValueError(f"{query}: no such label: {', '.join(sorted(labels - known))}")
    return _METRIC.sub(lambda found: found[1].replace(".", "_"), query).replace("[w]", "[$__rate_interval]")
