"""Submissions of one turn are answered as if each had come alone."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from waypost.entrypoints.gathering import MOST, Gathering

pytestmark = pytest.mark.asyncio


class Asked:
    """Answers each with its tenfold, once it may; remembers what came together."""

    def __init__(self) -> None:
        self.together: list[list[int]] = []
        self.has_begun = asyncio.Event()
        self.may_end = asyncio.Event()
        self.may_end.set()
        self.gathering: Gathering[int, int] = Gathering()
        self.may_share = True

    async def _submit(self, said: Sequence[int]) -> list[int]:
        self.together.append(list(said))
        self.has_begun.set()
        await self.may_end.wait()
        if 13 in said:
            raise ValueError(said)
        return [10 * each for each in said]

    async def ask(self, said: int, alike: str = "one") -> int:
        """Submit it."""
        return await self.gathering.submit(said, alike, self._submit, lambda: self.may_share)


async def test_one_turn_is_submitted_together() -> None:
    """Each has its own answer; what comes later is not waited for."""
    asked = Asked()
    assert await asyncio.gather(*map(asked.ask, [1, 2, 3])) == [10, 20, 30]
    assert await asked.ask(4) == 40
    assert asked.together == [[1, 2, 3], [4]]


async def test_only_what_is_alike_is_together() -> None:
    """Callers and lanes do not share."""
    asked = Asked()
    answers = [*await asyncio.gather(asked.ask(1), asked.ask(2, "other"), asked.ask(3), asked.ask(4, "other"))]
    assert answers == [10, 20, 30, 40]
    assert asked.together == [[1, 3], [2, 4]]


async def test_a_gathering_has_an_end() -> None:
    """However many come in one turn."""
    asked = Asked()
    many = list(range(100, 100 + 2 * MOST + 5))
    assert await asyncio.gather(*map(asked.ask, many)) == [10 * each for each in many]
    assert [len(each) for each in asked.together] == [MOST, MOST, 5]


async def test_what_may_not_share_is_submitted_alone() -> None:
    """So that each is refused by itself."""
    asked = Asked()
    asked.may_share = False
    assert await asyncio.gather(*map(asked.ask, [1, 2, 3])) == [10, 20, 30]
    assert sorted(asked.together) == [[1], [2], [3]]


async def test_what_fails_fails_for_all() -> None:
    """As a batch does; the next ones are answered."""
    asked = Asked()
    answers = await asyncio.gather(*map(asked.ask, [1, 13, 3]), return_exceptions=True)
    assert all(isinstance(each, ValueError) for each in answers)
    assert await asked.ask(5) == 50


@pytest.mark.parametrize("leaves", [0, 1, 2])
async def test_who_leaves_takes_nobody_along(leaves: int) -> None:
    """Not before it is submitted, ..."""
    asked = Asked()
    tasks = [asyncio.create_task(asked.ask(n)) for n in (1, 2, 3)]
    await asyncio.sleep(0)
    tasks[leaves].cancel()
    answers = await asyncio.gather(*tasks, return_exceptions=True)
    left = [answer for n, answer in enumerate(answers) if n != leaves]
    assert left == [10 * n for n in (1, 2, 3) if n != leaves + 1]
    assert isinstance(answers[leaves], asyncio.CancelledError)


@pytest.mark.parametrize("leaves", [0, 1, 2])
async def test_who_leaves_later_takes_nobody_along(leaves: int) -> None:
    """... and not after."""
    asked = Asked()
    asked.may_end.clear()
    tasks = [asyncio.create_task(asked.ask(n)) for n in (1, 2, 3)]
    await asked.has_begun.wait()
    tasks[leaves].cancel()
    await asyncio.wait([tasks[leaves]])
    asked.may_end.set()
    answers = await asyncio.gather(*tasks, return_exceptions=True)
    assert [answer for n, answer in enumerate(answers) if n != leaves] == [10 * n for n in (1, 2, 3) if n != leaves + 1]
    assert asked.together == [[1, 2, 3]]
