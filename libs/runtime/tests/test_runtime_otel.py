from __future__ import annotations

import json
import threading
from collections import defaultdict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import StringIO

import anyio
import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from snavio.runtime import messaging, metrics
from snavio.runtime.common_config import CommonConfig
from snavio.runtime.log_events import LogEvent
from snavio.runtime.logs import open_log
from snavio.runtime.observing import Both, Observing
from snavio.runtime.otel import open_otlp
from snavio.runtime.telemetry import SILENT
from snavio.runtime.testing import RecordingTelemetry
from snavio.runtime.tracecontext import TraceContext

ORIGIN = TraceContext("a" * 32, "b" * 16, sampled=True, state="vendor=1")


@pytest.fixture
def collector():
    """A real OTLP/HTTP collector: what was posted, by path, and where."""
    posted: dict[str, list[bytes]] = defaultdict(list)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                raise AssertionError("not asked for")
            posted[self.path].append(body)
            self.send_response(200)
            self.end_headers()

        def log_message(self, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", posted
    server.shutdown()
    server.server_close()
    thread.join()


async def test_spans_and_metrics_reach_a_collector_by_the_conventions(collector):
    endpoint, posted = collector
    telemetry = open_otlp(endpoint, resource={"service.name": "snavio-fast"}, interval_seconds=60)
    with messaging.processing(telemetry, "snavio-fast", [ORIGIN], 3):
        with messaging.sending(telemetry, "target-queue", 2) as sending:
            carried = sending.context
        telemetry.measure(metrics.COMMANDS, 2, service="fast", outcome="delivered")
        telemetry.measure(metrics.COMMANDS, 1, service="fast", outcome="delivered")
        telemetry.measure(metrics.QUEUE_LATENCY, 12.5, queue="fast")
        telemetry.measure(metrics.SNAPSHOT_SIZE, 9, snapshot="acl")
    await telemetry.close()

    request = ExportTraceServiceRequest.FromString(posted["/v1/traces"][0])
    (resource,) = request.resource_spans
    assert any(one.key == "service.name" for one in resource.resource.attributes)
    spans = {span.name: span for span in resource.scope_spans[0].spans}
    process, send = spans["process snavio-fast"], spans["send target-queue"]
    (link,) = process.links
    assert (link.trace_id.hex(), link.span_id.hex()) == (ORIGIN.trace_id, ORIGIN.span_id)
    assert send.parent_span_id == process.span_id
    assert carried is not None
    assert (carried.trace_id, carried.span_id) == (send.trace_id.hex(), send.span_id.hex())
    assert {one.key: one.value.string_value for one in send.attributes}["messaging.system"] == "aws_sqs"

    request = ExportMetricsServiceRequest.FromString(posted["/v1/metrics"][0])
    scopes = [scope for resource in request.resource_metrics for scope in resource.scope_metrics]
    found = {metric.name: metric for scope in scopes for metric in scope.metrics}
    (counted,) = found["Snavio.Commands"].sum.data_points
    assert counted.as_int == 3
    assert {one.key: one.value.string_value for one in counted.attributes} == {
        "service": "fast",
        "outcome": "delivered",
    }
    assert found["Snavio.Queue.Latency"].exponential_histogram.data_points[0].sum == 12.5
    assert found["Snavio.Snapshot.SizeBytes"].gauge.data_points[0].as_int == 9


async def test_a_parent_is_followed_and_a_failure_is_marked(collector):
    endpoint, posted = collector
    telemetry = open_otlp(endpoint, resource={}, interval_seconds=60)
    with pytest.raises(KeyError), telemetry.span("work", parent=ORIGIN, started_at=1000.0):
        raise KeyError("x")
    with telemetry.span("refused") as span:
        span.fail("acl-deny")
    await telemetry.close()
    request = ExportTraceServiceRequest.FromString(posted["/v1/traces"][0])
    spans = {span.name: span for span in request.resource_spans[0].scope_spans[0].spans}
    assert spans["work"].trace_id.hex() == ORIGIN.trace_id
    assert spans["work"].parent_span_id.hex() == ORIGIN.span_id
    assert spans["work"].trace_state == ORIGIN.state
    assert spans["work"].start_time_unix_nano == 1000 * 10**9
    assert spans["work"].status.code == spans["refused"].status.code == 2
    assert spans["refused"].status.message == "acl-deny"


async def test_log_lines_carry_the_ids_of_the_current_span(collector):
    endpoint, _ = collector
    telemetry = open_otlp(endpoint, resource={}, interval_seconds=60)
    out = StringIO()
    log = open_log(service="fast", worker_id="w1", stream=out)
    with telemetry.span("work") as span:
        log.info(LogEvent.COMMAND)
        context = span.context
    log.info(LogEvent.COMMAND)
    await telemetry.close()
    inside, outside = (json.loads(line) for line in out.getvalue().splitlines())
    assert context is not None
    assert (inside["trace_id"], inside["span_id"]) == (context.trace_id, context.span_id)
    assert "trace_id" not in outside


async def test_a_collector_that_never_answers_does_not_hold_up_the_exit():
    silent = await anyio.create_tcp_listener(local_host="127.0.0.1")
    port = silent.extra(anyio.abc.SocketAttribute.local_port)
    telemetry = open_otlp(f"http://127.0.0.1:{port}", resource={}, interval_seconds=60)
    telemetry.measure(metrics.STATS_LOST)
    with anyio.move_on_after(0.05) as scope:
        await telemetry.close()
    assert scope.cancelled_caught
    waiting = [thread for thread in threading.enumerate() if thread.name == "close-telemetry"]
    assert all(thread.daemon for thread in waiting)
    await silent.aclose()
    for thread in waiting:
        await anyio.to_thread.run_sync(thread.join)


@pytest.mark.parametrize(
    ("cloudwatch", "measuring", "tracing"),
    [(False, False, False), (True, True, False)],
    ids=["off", "cloudwatch"],
)
def test_without_a_collector_nothing_is_traced(cloudwatch, measuring, tracing):
    telemetry = Observing("fast", "w1", CommonConfig(cloudwatch_metrics=cloudwatch)).telemetry
    assert (telemetry.measuring, telemetry.tracing) == (measuring, tracing)
    assert (telemetry is SILENT) is not cloudwatch
    with telemetry.span("x") as span:
        assert span.context is None


def test_two_are_measured_with_and_the_first_traces():
    first, second = RecordingTelemetry(), RecordingTelemetry()
    both = Both(first, second)
    both.measure(metrics.BANS, 2, scope="global")
    with both.span("work"):
        pass
    assert first.total(metrics.BANS, scope="global") == second.total(metrics.BANS) == 2
    assert (len(first.spans), len(second.spans)) == (1, 0)


def test_the_recording_fake_refuses_an_attribute_a_metric_does_not_permit():
    with pytest.raises(ValueError, match=r"Snavio.Commands does not permit command_id"):
        RecordingTelemetry().measure(metrics.COMMANDS, 1, command_id="x")
