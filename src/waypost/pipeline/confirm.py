"""Confirm: from what devices and providers report to what is known of their targets."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from waypost.domain.amendment import Confirm, Confirmed, NotConfirmed
from waypost.domain.status import DeliveryStatus
from waypost.ports.clock import Clock
from waypost.ports.work import Work

UNSETTLED: Final = (DeliveryStatus.PENDING, DeliveryStatus.UNKNOWN, None)
"""The statuses of a target that may still be on its way to being settled; None: on a log it is not recorded yet."""
EARLY_S: Final = (0.2, 0.5, 1.0)
"""Pauses before a report is tried again whose target is not settled yet, s: its sender may be faster than we are."""


async def confirm(work: Work, clock: Clock, orders: Sequence[Confirm]) -> list[DeliveryStatus | None]:
    """Carry out *orders*, and return how each target stands then: None where no such target was sent.

    Late and repeated reports change nothing, and are answered alike.
    """
    standing: list[DeliveryStatus | None] = [None] * len(orders)
    left = list(range(len(orders)))
    for pause_s in (*EARLY_S, None):
        answers = await work.amend([orders[n] for n in left], clock.now())
        for n, answer in zip(left, answers, strict=True):
            assert isinstance(answer, Confirmed | NotConfirmed), "a confirmation is answered as one"
            standing[n] = answer.status
        left = [n for n in left if standing[n] in UNSETTLED]
        if not left or pause_s is None:
            break
        await asyncio.sleep(pause_s)
    return standing
