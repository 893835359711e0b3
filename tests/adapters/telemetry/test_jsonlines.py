"""Events as lines of JSON."""

from __future__ import annotations

import io
import json
import os
import time
from collections import Counter
from collections.abc import Iterator
from io import FileIO
from threading import Thread
from typing import Any

import pytest

from tests.shows import shows
from waypost.adapters.jsonlines.sink import JsonLinesSink, TextLinesSink
from waypost.adapters.jsonlines.writer import LINES_LIMIT
from waypost.bootstrap.paths import log_of
from waypost.config import Config, LogFormat, LogSettings
from waypost.telemetry import Combined, Event, Level, Metric, Silent

LONG_S = 10.0


def lines(level: Level, *events: tuple[Event, dict[str, Any]]) -> list[dict]:
    """What is written for *events*."""
    stream = io.BytesIO()
    log = JsonLinesSink(stream, level, worker=1)
    sink = Combined(log)
    for event, fields in events:
        sink.event(event, **fields)
        sink.count(Metric.STALE)
    assert log.flush(LONG_S)
    return [json.loads(line) for line in stream.getvalue().splitlines()]


@shows("S3-101", "S3-102")
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


def test_on_a_terminal_a_line_is_for_people_and_moves_no_cursor() -> None:
    """The same fields; what is no plain word is quoted and escaped, so it speaks to no terminal."""
    stream = io.BytesIO()
    log = TextLinesSink(stream, Level.INFO, worker=1)
    fields = {"credential": "demo/fcm", "why": "line\nbreak \x1b[2J", "notification": b"\x01\xff", "n": 0, "code": None}
    log.event(Event.BREAKER_OPENED, **fields)
    assert log.flush(LONG_S)
    (line,) = stream.getvalue().decode().splitlines()
    assert line[12:] == (
        "  warning  breaker.opened            worker=1  credential=demo/fcm"
        '  why="line\\nbreak \\u001b[2J"  notification=01ff  n=0  code=null'
    )


@pytest.mark.parametrize(
    ("chosen", "is_terminal", "sink"),
    [
        ("auto", True, TextLinesSink),
        ("auto", False, JsonLinesSink),
        ("json", True, JsonLinesSink),
        ("text", False, TextLinesSink),
    ],
)
def test_the_form_follows_the_terminal_unless_it_is_chosen(
    chosen: str, is_terminal: bool, sink: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    reading, writing = os.openpty() if is_terminal else os.pipe()
    stream = FileIO(writing, "wb")
    monkeypatch.setattr("waypost.bootstrap.paths.standard_error", lambda: stream)
    config = Config(apps={}, log=LogSettings(format=LogFormat(chosen)))
    with stream, os.fdopen(reading):
        assert type(log_of(config)) is sink


def test_what_is_below_the_level_is_not_written() -> None:
    """Warnings and errors alone, where that is asked for."""
    written = lines(Level.WARNING, (Event.CONNECTION_OPENED, {}), (Event.PROCESS_READY, {}), (Event.BREAKER_OPENED, {}))
    assert [line["event"] for line in written] == ["breaker.opened"]


def test_a_stream_that_is_gone_stops_nothing() -> None:
    """A full disk or a closed pipe behind the log."""

    class Gone(io.BytesIO):
        def write(self, _data: object) -> int:
            raise BrokenPipeError

    log = JsonLinesSink(Gone())
    log.event(Event.PROCESS_READY)
    assert log.flush(LONG_S)
    log.event(Event.PROCESS_READY)
    assert log.flush(LONG_S)


class _Counted(Silent):
    """Metrics that remember their sums."""

    def __init__(self) -> None:
        self.sums: Counter[Metric] = Counter()

    def count(self, metric: Metric, n: float = 1, /, **labels: str) -> None:
        """See Telemetry."""
        self.sums[metric] += int(n)


@pytest.mark.parametrize("blocking", [True, False], ids=["waits", "refuses"])
def test_who_does_not_read_loses_lines_and_is_told_how_many(blocking: bool) -> None:
    """Behind a full pipe a bounded number of lines waits; the others are counted, and the log says so afterwards."""
    taken, given = os.pipe()
    os.set_blocking(given, False)
    filler = _fill(given)
    os.set_blocking(given, blocking)
    counted, pipe = _Counted(), io.FileIO(given, "wb")
    log = JsonLinesSink(pipe, Level.INFO, counted)
    log.event(Event.PROCESS_STARTING)
    while log._writer._lines:  # until the first line is being written
        time.sleep(0)
    for n in range(LINES_LIMIT + 100):
        log.event(Event.PROCESS_READY, n=n)
    lost = counted.sums[Metric.LOG_DROPPED]
    assert lost == 100
    with io.FileIO(taken, "rb") as reader:
        reading = Thread(target=lambda: received.extend(_read(reader)))
        received: list[bytes] = []
        reading.start()
        assert log.flush(LONG_S)
        log.event(Event.PROCESS_STOPPED)
        assert log.flush(LONG_S)
        pipe.close()
        reading.join(LONG_S)
    written = b"".join(received)[filler:].splitlines()
    said = [json.loads(line) for line in written]
    assert [each["n"] for each in said if "n" in each] == list(range(LINES_LIMIT + 100 - lost))
    assert [(each["event"], each.get("count")) for each in said[-2:]] == [
        ("log.dropped", lost),
        ("process.stopped", None),
    ]


def _fill(pipe: int) -> int:
    """Write until nothing more goes in; how much it was."""
    written = 0
    try:
        while True:
            written += os.write(pipe, b"-" * 4096)
    except BlockingIOError:
        return written


def _read(pipe: io.FileIO) -> Iterator[bytes]:
    while some := pipe.read(1 << 16):
        yield some
