"""When a message waits for others, and when it stops waiting."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator

import pytest

from tests.shows import shows
from waypost.channels.fcm.groups import LARGEST, WINDOW_S, Group


class Timer:
    """A call that the test makes when it is time."""

    def __init__(self, delay_s: float, call: Callable[[], None]) -> None:
        self.delay_s = delay_s
        self.call = call
        self.cancelled = False

    def cancel(self) -> None:
        """As asyncio's."""
        self.cancelled = True


class Bench:
    """A group whose streams and time are the test's."""

    def __init__(self, loop: asyncio.AbstractEventLoop, monkeypatch: pytest.MonkeyPatch) -> None:
        self.free = 0
        self.handed_over: list[list[int]] = []
        self.timers: list[Timer] = []
        monkeypatch.setattr(loop, "call_later", self._call_later)
        self.group: Group[int] = Group(loop, lambda: self.free, self._go)

    @property
    def running(self) -> list[Timer]:
        """The windows that are open."""
        return [timer for timer in self.timers if not timer.cancelled]

    def _go(self, messages: Iterable[int]) -> None:
        leaving = list(messages)
        self.free = max(0, self.free - len(leaving))
        self.handed_over.append(leaving)

    def _call_later(self, delay_s: float, call: Callable[[], None]) -> Timer:
        timer = Timer(delay_s, call)
        self.timers.append(timer)
        return timer


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    """No stream is free."""
    loop = asyncio.new_event_loop()
    yield Bench(loop, monkeypatch)
    loop.close()


def test_with_a_free_stream_a_message_goes_at_once(bench: Bench) -> None:
    bench.free = 2
    bench.group.add([1])
    bench.group.add([2])
    assert bench.handed_over == [[1], [2]]
    assert not bench.timers


def test_what_waits_goes_as_streams_become_free_oldest_first(bench: Bench) -> None:
    bench.free = 1
    bench.group.add([1, 2, 3])
    bench.group.add([4])
    assert bench.handed_over == [[1]]
    bench.free = 2
    bench.group.fill()
    assert bench.handed_over == [[1], [2, 3]]
    bench.free = 1
    bench.group.fill()
    assert bench.handed_over[-1] == [4]
    assert not bench.running


def test_nothing_overtakes_what_waits_already(bench: Bench) -> None:
    bench.group.add([1])
    bench.free = 1
    bench.group.add([2])
    assert bench.handed_over == [[1]]


@shows("S1-85", "S3-52")
def test_the_500th_message_hands_the_group_over_without_a_timer(bench: Bench) -> None:
    """Requirements S1-83 and S1-85."""
    bench.group.add(range(LARGEST - 1))
    assert not bench.handed_over
    bench.group.add([LARGEST - 1])
    assert bench.handed_over == [list(range(500))]
    assert not bench.running


@shows("S1-83", "S3-52")
def test_more_than_a_group_goes_as_groups_and_the_rest_waits(bench: Bench) -> None:
    bench.group.add(range(1200))
    assert [len(group) for group in bench.handed_over] == [500, 500]
    assert len(bench.group) == 200
    assert len(bench.running) == 1


@shows("S1-84")
def test_a_group_that_is_not_full_is_handed_over_when_its_window_ends(bench: Bench) -> None:
    """Requirements S1-84: 500 ms after its first message."""
    bench.group.add([1])
    bench.group.add([2])
    (window,) = bench.running
    assert window.delay_s == WINDOW_S == 0.5
    window.call()
    assert bench.handed_over == [[1, 2]]
    bench.group.add([3])
    assert len(bench.running) == 1


@shows("S1-84")
def test_an_empty_window_hands_over_nothing(bench: Bench) -> None:
    bench.group.flush()
    bench.group.add([])
    assert not bench.handed_over
    assert not bench.timers
