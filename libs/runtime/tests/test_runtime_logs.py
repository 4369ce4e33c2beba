from __future__ import annotations

import json
import logging
from io import StringIO

import pytest

from snavio.runtime.log_events import LogEvent
from snavio.runtime.logs import STRUCK, adopt_libraries, open_log


@pytest.fixture
def out() -> StringIO:
    return StringIO()


def written(out: StringIO) -> list[dict]:
    return [json.loads(line) for line in out.getvalue().splitlines()]


def test_a_line_is_one_json_object_with_who_when_and_what(out):
    log = open_log(service="shield", worker_id="w1", stream=out, now=lambda: 1_795_000_000.25)
    log.bind(queue="ingress").info(LogEvent.QUEUE_RELEASED, messages=3)
    assert written(out) == [
        {
            "timestamp": "2026-11-18T11:06:40.250Z",
            "level": "info",
            "event": "queue.released",
            "service": "shield",
            "worker": "w1",
            "queue": "ingress",
            "messages": 3,
        }
    ]


def test_lines_below_the_level_are_not_written(out):
    log = open_log(service="shield", worker_id="w1", level="warning", stream=out)
    log.debug(LogEvent.COMMAND)
    log.info(LogEvent.COMMAND)
    log.warning(LogEvent.COMMAND)
    assert [line["level"] for line in written(out)] == ["warning"]
    assert not log.enabled("info")
    assert log.enabled("error")


@pytest.mark.parametrize("name", ["body", "payload", "secret", "hmac", "token"])
def test_a_field_that_could_hold_a_body_or_a_secret_is_struck_out(out, name):
    log = open_log(service="shield", worker_id="w1", stream=out)
    log.info(LogEvent.COMMAND, **{name: "the crown jewels"})
    log.bind(**{name: "the crown jewels"}).error(LogEvent.COMMAND)
    assert [line[name] for line in written(out)] == [STRUCK] * 2


def test_an_error_is_told_with_where_it_was_raised_and_a_warning_without(out):
    log = open_log(service="shield", worker_id="w1", stream=out)
    with pytest.raises(KeyError) as caught:
        {}["x"]
    log.error(LogEvent.HANDLER_RAISED, error=caught.value)
    log.warning(LogEvent.HANDLER_RAISED, error=caught.value)
    error, warning = written(out)
    assert (error["error_type"], error["error"]) == ("KeyError", "'x'")
    assert "test_runtime_logs.py" in error["exception"]
    assert "exception" not in warning


def test_what_libraries_log_comes_out_as_our_lines(out):
    root = logging.getLogger()
    before, level = root.handlers[:], root.level
    try:
        adopt_libraries(open_log(service="shield", worker_id="w1", stream=out))
        logging.getLogger("botocore").warning("slow %s", "down")
        logging.getLogger("botocore").info("chatter")
    finally:
        logging.captureWarnings(False)
        root.handlers[:] = before
        root.setLevel(level)
    (line,) = written(out)
    assert (line["event"], line["logger"], line["message"]) == ("library", "botocore", "slow down")


def test_the_console_form_is_for_people(out):
    open_log(service="shield", worker_id="w1", log_format="console", stream=out).info(LogEvent.WORKER_STARTED)
    assert "worker.started" in out.getvalue()
    assert not out.getvalue().startswith("{")
