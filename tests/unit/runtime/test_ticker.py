"""Tickers: what has nothing to do rests until something is written, and asks again for what another process does."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

from waypost.domain.errors import Unavailable
from waypost.runtime.ticker import ELSEWHERE, TOGETHER_S, UNTIL_WRITTEN, Rest, every
from waypost.stores.sql.changes import StoreChanges
from waypost.stores.sql.sqlite import DataVersion
from waypost.telemetry import Silent

pytestmark = pytest.mark.asyncio


class Task:
    """A task that answers as a test says, and counts how often it was called."""

    def __init__(self, *answers: Rest | Exception | None) -> None:
        self.answers = list(answers)
        self.called = 0
        self.changes = StoreChanges(self._same)
        self._acted = asyncio.Event()

    async def act(self) -> Rest | None:
        """Give the next answer; the last one for ever."""
        self.called += 1
        self._acted.set()
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def calls(self, count: int) -> None:
        """Wait for so many calls."""
        while self.called < count:
            self._acted.clear()
            await self._acted.wait()

    async def _same(self) -> DataVersion:
        return DataVersion(0)


@contextlib.asynccontextmanager
async def ticking(task: Task, *, with_changes: bool = True) -> AsyncIterator[None]:
    """Call the task without a pause."""
    changes = task.changes if with_changes else None
    running = asyncio.create_task(every(0, task.act, Silent(), "it", changes))
    try:
        yield
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def turns() -> None:
    """Let everything that is ready run, many times over."""
    for _ in range(50):
        await asyncio.sleep(0)


async def test_what_found_nothing_rests_until_something_is_written() -> None:
    task = Task(UNTIL_WRITTEN)
    async with ticking(task):
        await task.calls(1)
        await turns()
        assert task.called == 1
        task.changes.note()
        await turns()
        assert task.called == 2


async def test_what_is_written_while_it_looks_is_looked_for_again() -> None:
    task = Task(UNTIL_WRITTEN)
    act = task.act

    async def written_meanwhile() -> Rest | None:
        if task.called == 0:
            task.changes.note()
        return await act()

    task.act = written_meanwhile  # type: ignore[method-assign]  # as a test says
    async with ticking(task):
        await turns()
        assert task.called == 2, "and not when its rest is over"


@pytest.mark.parametrize("answer", [None, Unavailable("for a while"), ValueError()], ids=["more", "away", "failed"])
async def test_what_may_have_more_to_do_does_not_rest(answer: Exception | None) -> None:
    task = Task(answer)
    async with ticking(task):
        await task.calls(3)


async def test_without_word_of_changes_nothing_rests() -> None:
    task = Task(UNTIL_WRITTEN)
    async with ticking(task, with_changes=False):
        await task.calls(3)


async def test_a_rest_ends_in_time_although_nothing_was_written() -> None:
    """Some of what a duty does is due by the clock alone."""
    task = Task(Rest(0.01))
    async with ticking(task):
        await task.calls(3)


async def test_what_another_process_does_is_asked_for_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever does it may die, so that it is asked for again, though nothing was written."""
    slept: list[float] = []
    sleep = asyncio.sleep

    async def noted(seconds: float) -> None:
        slept.append(seconds)
        await sleep(0)

    monkeypatch.setattr(asyncio, "sleep", noted)
    task = Task(ELSEWHERE, None)
    async with ticking(task):
        await task.calls(3)
    assert ELSEWHERE.longest_s - TOGETHER_S < slept[0] <= ELSEWHERE.longest_s + 0.002 and set(slept[1:]) == {0}
