"""Erase: withdraw what is open for a user, forget the devices, and blank what is final, page by page.

Each step may be repeated, so that an erasure goes on wherever it was interrupted.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from msgspec import Struct

from waypost.domain.amendment import Withdraw
from waypost.domain.time import MINUTE_MS, Instant, later
from waypost.ports.devices import Devices
from waypost.ports.erasure import Erasure, Erasures
from waypost.ports.work import Work

PAGE: Final = 500
LINGER_MS: Final = MINUTE_MS
"""Milliseconds that an erasure stands at least: rows of what a worker or a bulk list had in hand come meanwhile."""
WHY: Final = "erased"


class Erased(Struct, frozen=True):
    """The result of one pass of an erasure."""

    blanked: int
    finished: bool


async def erase(
    erasures: Erasures,
    devices: Devices,
    work: Work,
    erasure: Erasure,
    now: Instant,
    beside: Sequence[Callable[[Erasure], Awaitable[None]]] = (),
    *,
    deletes: bool = False,
) -> Erased:
    """Erase all that is stored of the user, in one pass; it is the last where nothing can come any more.

    *beside* takes the user out of what features keep. Final notifications stay without the person, unless it *deletes*.
    """
    await devices.erase(erasure.app, erasure.user_id, erasure.asked_at)
    await erasures.strike(erasure)
    for strike in beside:
        await strike(erasure)
    if unfinished := await erasures.unfinished(erasure, PAGE):
        await work.amend([Withdraw(erasure.app, each, WHY) for each in unfinished], now)
    blanked = 0
    clear = erasures.delete if deletes else erasures.blank
    while page := await clear(erasure, PAGE):
        blanked += page
    over = now >= later(erasure.asked_at, LINGER_MS) and not await erasures.unfinished(erasure, 1)
    if over and not blanked:
        await erasures.finish(erasure, now)
    return Erased(blanked, over and not blanked)
