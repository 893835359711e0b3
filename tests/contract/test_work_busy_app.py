"""An app with more waiting than a worker reads ahead, and another one that sends something after all of it."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.contract.bench import APP, OTHER_APP, Bench, notification
from tests.contract.promised import promise
from waypost.ports.promises import Promise

pytestmark = [pytest.mark.asyncio, promise(Promise.BOUNDS_BUSY_APPS)]

WAITING = 8_000
"""Twice what a worker of the log holds leasable."""
BATCH = 1_000


async def test_what_comes_behind_a_busy_app_is_leased_next(bench: Bench) -> None:
    for first in range(0, WAITING, BATCH):
        await bench.accept(*(notification(bench.now, user=f"u{first + n}") for n in range(BATCH)))
    await bench.accepted(app=OTHER_APP)
    lease = await bench.lease(2)
    assert Counter(item.notification.app for item in lease.items) == {APP: 1, OTHER_APP: 1}
