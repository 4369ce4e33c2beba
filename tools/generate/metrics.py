"""The page of metrics and log events."""

from __future__ import annotations

from docstrings import NOTICE, attribute_docs, one_line

from snavio.runtime.log_events import LogEvent
from snavio.runtime.metrics import ALL


def metrics_page() -> str:
    """Every metric and every log event."""
    docs = attribute_docs(LogEvent)
    return "\n".join(
        [
            NOTICE,
            "",
            "# Metrics and log events",
            "",
            "Metrics go out by OTLP when `OTEL_EXPORTER_OTLP_ENDPOINT` is set. Attributes are bounded sets: a queue of the platform, a",
            "reason code, a path; never an id.",
            "",
            "| metric | kind | unit | attributes | what it measures |",
            "|---|---|---|---|---|",
            *(
                f"| `{metric.name}` | {metric.kind} | {metric.unit} | {', '.join(sorted(metric.attributes))} | {metric.description} |"
                for _, metric in sorted(ALL.items())
            ),
            "",
            "## Log events",
            "",
            "A log line is one JSON object; its `event` is one of these.",
            "",
            *(f"- `{event.value}` {one_line(docs.get(event.name))}".rstrip() for event in LogEvent),
            "",
        ]
    )
