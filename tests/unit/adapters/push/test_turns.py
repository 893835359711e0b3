"""Work a few pieces at a time: what comes in quick succession together, and the loop in between."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from waypost.channels.push.turns import TURN, Turns

pytestmark = pytest.mark.asyncio


def at_once() -> float:
    """Return what a clock shows where nothing takes any time."""
    return 0.0


async def rested(turns: int = 10) -> None:
    """Let the loop turn so often."""
    for _ in range(turns):
        await asyncio.sleep(0)


async def test_what_comes_in_turns_that_follow_each_other_is_done_together_and_nothing_before_add_returned() -> None:
    done: list[list[int]] = []
    turns: Turns[int] = Turns(lambda some: done.append(list(some)), at_once)
    for n in range(3):
        turns.add(2 * n)
        turns.add(2 * n + 1)
        assert done == []
        await asyncio.sleep(0)
    await rested()
    assert done == [[0, 1, 2, 3, 4, 5]]
    turns.add(6)
    await rested()
    assert done[1:] == [[6]]


async def test_a_turn_has_no_more_than_its_number_and_waits_for_nothing_once_it_has_it() -> None:
    done: list[int] = []
    turns: Turns[int] = Turns(lambda some: done.append(len(some)), at_once)
    for n in range(2 * TURN + 1):
        turns.add(n)
    others: list[int] = []
    asyncio.get_running_loop().call_soon(lambda: others.extend(done))
    await asyncio.sleep(0)
    assert done == [TURN]
    await rested()
    assert done == [TURN, TURN, 1]
    assert others == [TURN], "the loop has its turn in between"


async def test_what_never_ends_to_come_is_done_all_the_same() -> None:
    done: list[int] = []
    turns: Turns[int] = Turns(lambda some: done.append(len(some)), at_once)
    for n in range(3 * TURN):
        turns.add(n)
        await asyncio.sleep(0)
    assert sum(done) >= 2 * TURN


async def test_a_surprise_stops_none_of_those_behind_it() -> None:
    done: list[int] = []
    surprises: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: surprises.append(context.get("exception")))

    def do(some: Sequence[int]) -> None:
        if some[0] == 0:
            raise RuntimeError("a bug")
        done.extend(some)

    turns: Turns[int] = Turns(do, at_once)
    for n in range(TURN + 3):
        turns.add(n)
    await rested()
    assert done == [TURN, TURN + 1, TURN + 2]
    assert [type(each) for each in surprises] == [RuntimeError]


async def test_what_waits_is_done_at_the_end() -> None:
    done: list[int] = []
    turns: Turns[int] = Turns(done.extend, at_once)
    for n in range(TURN + 3):
        turns.add(n)
    turns.finish()
    assert done == list(range(TURN + 3))
    await rested()
    assert len(done) == TURN + 3


async def test_where_the_work_takes_long_fewer_are_done_in_a_turn_until_it_is_quick_again() -> None:
    now_s, each_s, done = 0.0, 2**-11, list[int]()

    def do(some: Sequence[int]) -> None:
        nonlocal now_s
        now_s += each_s * len(some)
        done.append(len(some))

    turns: Turns[int] = Turns(do, lambda: now_s)
    for n in range(TURN + 16):
        turns.add(n)
    await rested()
    assert done == [TURN, 8, 8], "eight take the four milliseconds of a turn"
    each_s = 0.01
    for n in range(8 + 8):
        turns.add(n)
    await rested()
    assert done[3:] == [8, 4, 4], "four at least"
    each_s = 0.0001
    for n in range(4 + TURN):
        turns.add(n)
    await rested()
    assert done[6:] == [4, TURN]
