"""Ten times as many silent notifications before visible ones: each visible one has the same turn as without them."""

from __future__ import annotations

import pytest

from tests.contract.bench import Bench, notification, sent, targets
from tests.shows import shows
from waypost.domain.notification import Lane
from waypost.ports.work import Settled

pytestmark = pytest.mark.asyncio

VISIBLE, USUAL, TIMES = 10, 6, 10
A_TURN = 5
"""The most that a lane has room for at once."""


@shows("S1-136")
async def test_a_visible_one_has_its_turn_as_early_in_a_silent_flood(bench: Bench) -> None:
    """By the order of things, whatever it costs; the flood is worked off meanwhile, in turns of its own."""
    usual, _ = await _turns(bench, USUAL)
    flooded, rest = await _turns(bench, USUAL * TIMES)
    assert flooded == usual == [n // A_TURN for n in range(VISIBLE)]
    assert rest == USUAL * TIMES - VISIBLE, "as much silent as visible left meanwhile"


async def _turns(bench: Bench, silent: int) -> tuple[list[int], int]:
    """The turn in which each visible one is leased, with so many silent ones before; and how many wait in the end."""
    quiet = [notification(bench.now, user=f"u{n}", lane=Lane.SILENT) for n in range(silent)]
    visible = [notification(bench.now, user=f"u{n}") for n in range(VISIBLE)]
    await bench.accept(*quiet, *visible)
    turns: list[int] = []
    turn = left = 0
    while len(turns) < VISIBLE:
        left += await _sent(bench, Lane.SILENT)
        turns += [turn] * await _sent(bench, Lane.NORMAL)
        turn += 1
    rest = max(silent - left, 0)
    while await _sent(bench, Lane.SILENT):
        pass
    return turns, rest


async def _sent(bench: Bench, lane: Lane) -> int:
    """Lease what there is room for, and settle it."""
    lease = await bench.lease(A_TURN, lane)
    done = [Settled(item.notification, (sent(0, bench.now),), targets(1)) for item in lease.items]
    await bench.settle(lease, *done)
    return len(lease.items)
