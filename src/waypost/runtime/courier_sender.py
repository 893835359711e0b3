"""A ``Sender`` made of a courier: a task for each delivery, in the time that is allowed, reported exactly once."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Final

from msgspec.structs import replace

from waypost.domain.credential import CredentialId
from waypost.domain.delivery import Delivery
from waypost.domain.outcome import CredentialRejected, Outcome, Reach, Refused, Taken, Unanswered
from waypost.domain.time import SECOND_MS
from waypost.ports.courier import Courier, outcome_of_answer
from waypost.ports.sender import Capabilities, Health, Rendered, Report
from waypost.telemetry import Event, Telemetry

_STOPPED: Final = Unanswered("stopped", "the sender was stopped before the answer came")
_LATE: Final = Unanswered("timeout", "no answer in time")


class CourierSender:
    """The ``Sender`` of one courier."""

    def __init__(
        self, credential: CredentialId, courier: Courier, capabilities: Capabilities, *, telemetry: Telemetry
    ) -> None:
        self.credential: Final = credential
        self.capabilities: Final = capabilities
        self._courier, self._telemetry = courier, telemetry
        self._tasks: set[asyncio.Task[Outcome]] = set()
        self._denied: str | None = None
        self._is_open = False

    async def start(self) -> None:
        """Start the courier; ConfigurationError names a credential that cannot be used."""
        await self._courier.start()
        self._is_open = True

    def send(self, batch: Sequence[Delivery], report: Report) -> None:
        """Begin to send; each delivery is reported exactly once, never before this returns."""
        for delivery in batch:
            task = asyncio.get_running_loop().create_task(self._outcome_of(delivery))
            self._tasks.add(task)
            task.add_done_callback(partial(self._ended, delivery, report))

    def render(self, delivery: Delivery) -> Rendered:
        """Show what would be sent, and why it would not be."""
        shown = self._courier.render(delivery)
        return replace(shown, refused=shown.refused or _excess(shown))

    def health(self) -> Health:
        """Report the sender's health: not ok from a refusal of the whole credential until something is taken."""
        return Health(ok=self._denied is None, why=self._denied)

    async def stop(self, timeout_s: float) -> None:
        """Let deliveries in flight end, cut off what is late, then stop the courier."""
        if self._tasks:
            _, late = await asyncio.wait(self._tasks, timeout=timeout_s)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)
        if self._is_open:
            self._is_open = False
            await self._courier.stop()

    async def _outcome_of(self, delivery: Delivery) -> Outcome:
        excess = _excess(self._courier.render(delivery))
        if excess is not None:
            return Refused("payload_too_large", excess)
        try:
            async with asyncio.timeout(self.capabilities.request_timeout_ms / SECOND_MS):
                return outcome_of_answer(await self._courier.deliver(delivery))
        except TimeoutError:
            return _LATE

    def _ended(self, delivery: Delivery, report: Report, task: asyncio.Task[Outcome]) -> None:
        self._tasks.discard(task)
        outcome = _STOPPED if task.cancelled() else self._result_of(task)
        self._heed(outcome)
        report(delivery, outcome)

    def _result_of(self, task: asyncio.Task[Outcome]) -> Outcome:
        """Read what a task came to; a surprise in the courier leaves open whether the provider has the message."""
        surprise = task.exception()
        if surprise is None:
            return task.result()
        name = type(surprise).__name__
        self._telemetry.event(Event.STAGE_FAILED, stage="deliver", part=str(self.credential), error=name)
        return Unanswered("sender_failed", f"the sender failed with {name}")

    def _heed(self, outcome: Outcome) -> None:
        """Note a refusal of the whole credential: told once, it stands until something is taken again."""
        if isinstance(outcome, Taken):
            self._denied = None
        elif isinstance(outcome, CredentialRejected) and outcome.reach is Reach.CREDENTIAL:
            why = f"{outcome.code}: {outcome.why}"
            if why != self._denied:
                self._denied = why
                self._telemetry.event(
                    Event.CREDENTIAL_DENIED, credential=str(self.credential), code=outcome.code, why=outcome.why
                )


def _excess(shown: Rendered) -> str | None:
    """Say by how much a message is too large; None where it is not."""
    return f"{shown.size_bytes} bytes, limit {shown.limit_bytes}" if shown.size_bytes > shown.limit_bytes else None
