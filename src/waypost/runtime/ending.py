"""How a process that delivers ends: when it is told to, or when a stage failed, and what it finishes before."""

from __future__ import annotations

import asyncio
import contextlib
import traceback
from collections.abc import Sequence
from pathlib import Path

from waypost.domain.errors import WaypostError
from waypost.runtime.crew import Crew
from waypost.runtime.leasing import LeaseLoop
from waypost.telemetry import Event, Telemetry

FAILED_DRAIN_S = 2.0
"""What a process of which a stage failed gives the others to settle."""
LAST_WORDS_S = 1.0
"""For the senders to report what is still in flight, and for that to be written."""


async def told_to_stop(stop: asyncio.Event, stages: Sequence[asyncio.Task[None]], telemetry: Telemetry) -> None:
    """Return when *stop* is set; a stage that failed is a WaypostError: the process ends rather than goes without.

    What the stage was about to touch stays noted, so that it is taken alone from now on.
    """
    told = asyncio.create_task(stop.wait())
    done, _ = await asyncio.wait([told, *stages], return_when=asyncio.FIRST_COMPLETED)
    told.cancel()
    for error in (task.exception() for task in done - {told}):
        if error is not None:
            last = traceback.extract_tb(error.__traceback__)[-1]
            failed = {"error": type(error).__name__, "place": f"{Path(last.filename).name}:{last.lineno}"}
            telemetry.event(Event.STAGE_FAILED, stage="deliver", **failed)
            raise WaypostError(f"a stage failed: {failed['error']} at {failed['place']}") from None


async def drained(
    crew: Crew, loops: Sequence[LeaseLoop], running: Sequence[asyncio.Task[None]], timeout_s: float
) -> None:
    """Lease nothing more, then finish what is in hand: deliveries in flight, their settlements; stop the senders."""
    for loop in loops:
        loop.stop()
    try:
        async with asyncio.timeout(timeout_s):
            await asyncio.gather(*running, return_exceptions=True)
            await asyncio.gather(*(loop.landed() for loop in loops))
            await crew.settler.drained()
    except TimeoutError:
        pass  # what is still in flight is leased again by whoever comes next
    await asyncio.gather(*(sender.stop(LAST_WORDS_S) for sender in crew.senders.values()))
    with contextlib.suppress(TimeoutError):  # a store that is away: it is leased again
        async with asyncio.timeout(LAST_WORDS_S):
            await crew.settler.drained()
