"""The end of a process that delivers: when it is told to, or when a stage failed, and what it finishes before."""

from __future__ import annotations

import asyncio
import contextlib
import traceback
from collections.abc import Coroutine, Iterable, Sequence
from pathlib import Path
from typing import Any

from waypost.domain.errors import Unavailable, WaypostError
from waypost.runtime.delivery_context import DeliveryContext
from waypost.runtime.leasing import LeaseLoop
from waypost.telemetry import Event, Telemetry

FAILED_DRAIN_S = 2.0
"""Seconds that a process whose stage failed gives the others to settle."""
LAST_WORDS_S = 1.0
"""Seconds for the senders to report what is still in flight, and for that to be written."""


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


async def ended_by(timeout_s: float, parts: Iterable[Coroutine[Any, Any, None]], telemetry: Telemetry) -> None:
    """Let all of *parts* end within *timeout_s*: what is late is cancelled, and left behind where that does not end it.

    A part that fails is told of and keeps none of the others from its end.
    """
    tasks = [asyncio.create_task(part) for part in parts]
    if not tasks:
        return
    await asyncio.sleep(0)  # each has begun, so that each is told when it is cancelled
    _, late = await asyncio.wait(tasks, timeout=timeout_s)
    for task in late:
        task.cancel()
    if late:
        await asyncio.wait(late, timeout=LAST_WORDS_S)
    for task in tasks:
        failure = None if not task.done() or task.cancelled() else task.exception()
        if failure is not None and not isinstance(failure, Unavailable):  # the store reports its outage itself
            telemetry.event(Event.STAGE_FAILED, stage="drain", error=type(failure).__name__)


async def landed(context: DeliveryContext, loops: Sequence[LeaseLoop], running: Sequence[asyncio.Task[None]]) -> None:
    """Finish what the *loops*, which lease nothing more, have in hand: deliveries in flight, their settlements."""
    if running:
        await asyncio.wait(running)
    await asyncio.gather(*(loop.landed() for loop in loops))
    await context.settler.drained()


async def senders_stopped(context: DeliveryContext) -> None:
    """Stop the senders; write what they still report. What is in flight then is leased again by whoever comes next."""
    stopping = [sender.stop(LAST_WORDS_S) for sender in context.senders.values()]
    await ended_by(2 * LAST_WORDS_S, stopping, context.telemetry)
    with contextlib.suppress(TimeoutError):  # a store that is away: it is leased again
        async with asyncio.timeout(LAST_WORDS_S):
            await context.settler.drained()
