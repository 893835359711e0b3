"""Events as lines of JSON."""

from __future__ import annotations

import io
import json
from typing import Any

from waypost.adapters.jsonlines.sink import JsonLinesSink
from waypost.telemetry import Combined, Event, Level, Metric


def lines(level: Level, *events: tuple[Event, dict[str, Any]]) -> list[dict]:
    """What is written for *events*."""
    stream = io.BytesIO()
    sink = Combined(JsonLinesSink(stream, level, worker=1))
    for event, fields in events:
        sink.event(event, **fields)
        sink.count(Metric.STALE)
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_an_event_is_one_line_with_time_level_name_and_fields() -> None:
    """Ids in hex; an exception by its type alone, since its text may quote content."""
    fields = {"notification": b"\x01" * 16, "count": 3, "error": ValueError("hush"), "why": "line\nbreak"}
    (line,) = lines(Level.INFO, (Event.STORE_FULL, fields))
    assert line.pop("timestamp").endswith("Z")
    assert line == {
        "level": "error",
        "event": "store.full",
        "worker": 1,
        "notification": "01" * 16,
        "count": 3,
        "error": "ValueError",
        "why": "line\nbreak",
    }


def test_what_is_below_the_level_is_not_written() -> None:
    """Warnings and errors alone, where that is asked for."""
    written = lines(Level.WARNING, (Event.CONNECTION_OPENED, {}), (Event.PROCESS_READY, {}), (Event.BREAKER_OPENED, {}))
    assert [line["event"] for line in written] == ["breaker.opened"]


def test_a_stream_that_is_gone_stops_nothing() -> None:
    """A full disk or a closed pipe behind the log."""

    class Gone(io.BytesIO):
        def write(self, _data: object) -> int:
            raise BrokenPipeError

    JsonLinesSink(Gone()).event(Event.PROCESS_READY)
