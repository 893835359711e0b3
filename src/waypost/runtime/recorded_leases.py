"""Leases with a second record beside them: who is at a notification, and what came of it, is said there as well.

The lease decides who works on what, as ever; the record can only add a refusal. What it calls delivered is not sent
again, and what another worker seems to be at is given back until that lock ends. While the records are away the
lease alone decides.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Final, assert_never

from msgspec import Struct

from waypost.domain.errors import Unavailable
from waypost.domain.ids import NotificationId
from waypost.domain.notification import Lane
from waypost.domain.progress import Stale
from waypost.domain.sending_record import RecordStatus
from waypost.domain.settlement import Again, Change, Intent, Sent
from waypost.domain.status import CONFIRMED, DeliveryStatus, NotificationStatus
from waypost.domain.time import Instant
from waypost.ports.clock import Clock
from waypost.ports.sending_records import Right, Round, SendingRecords
from waypost.ports.work import Lease, Leases, Settled, WorkItem

HELD_S: Final = 1.0
"""Seconds for which a refused item is kept under its lease at most, so that it is not leased over and over."""


_SENT: Final = CONFIRMED | {DeliveryStatus.SENT, DeliveryStatus.SUPPRESSED}


class _Begun(Struct):
    """A notification that is leased with its lock: its targets, and what became of them."""

    retries: int
    open: set[int] | None
    """The targets still to be settled; None until they are known."""
    is_whole: bool
    """Whether each target that is not open here was sent: none failed, is tried again, or is another lease's."""


class RecordedLeases:
    """See Leases; the queue is another's."""

    def __init__(self, work: Leases, records: SendingRecords, clock: Clock) -> None:
        self._work = work
        self._records = records
        self._clock = clock
        self._begun: dict[NotificationId, _Begun] = {}
        self._parts: dict[NotificationId, bool] = {}
        """Whether the rest of what was given back here is whole: a lease that follows at once does not tell of it."""
        self._giving_back: set[asyncio.Task[None]] = set()

    async def lease(self, lane: Lane, n: int, until: Instant) -> Lease:
        """See Leases; goes on where all of a lease was refused, since what is behind it may be free."""
        while True:
            lease = await self._work.lease(lane, n, until)
            free = await self._free(lease) if lease.items else ()
            if free or not lease.items:
                return Lease(lease.token, lane, tuple(free))

    async def extend(self, lease: Lease, until: Instant) -> bool:
        """See Leases."""
        return await self._work.extend(lease, until)

    async def settle(self, lease: Lease, settled: Sequence[Settled]) -> list[Stale]:
        """See Leases; the record is written first, so that it is the older of the two."""
        came: dict[NotificationId, tuple[RecordStatus, Round]] = {}
        for each in settled:
            begun = self._begun.get(each.notification.id)
            if begun is not None and (status := self._status_of(begun, each)) is not None:
                came[each.notification.id] = status, Round(each.notification.expires_at, begun.retries)
                del self._begun[each.notification.id]
        if came:
            with suppress(Unavailable):  # Redis reports its outage itself; the lock ends in time
                await self._records.note(came)
        return await self._work.settle(lease, settled)

    async def _free(self, lease: Lease) -> Sequence[WorkItem]:
        """Take the locks of a lease, and return what may be sent."""
        try:
            answers = await self._records.acquire({each.notification.id: _round_of(each) for each in lease.items})
        except Unavailable:
            return lease.items
        free: list[WorkItem] = []
        held: list[WorkItem] = []
        delivered: list[Settled] = []
        for item, answer in zip(lease.items, answers, strict=True):
            match answer.right:
                case Right.FIRST | Right.RETRY:
                    self._begin(item)
                    free.append(item)
                case Right.HELD:
                    self._remember(item)
                    held.append(item)
                case Right.DELIVERED:
                    delivered.append(_delivered(item, self._clock.now()))
                case _:
                    assert_never(answer.right)
        if delivered:
            await self._work.settle(lease, delivered)
        if held:
            wait_ms = min(each.wait_ms for each in answers if each.right is Right.HELD)
            self._hold(lease, held, min(HELD_S, wait_ms / 1000))
        return free

    def _begin(self, item: WorkItem) -> None:
        numbers = None if item.open_targets is None else {each.n for each in item.open_targets}
        self._begun[item.notification.id] = _Begun(_round_of(item).retries, numbers, self._is_rest_whole(item))
        self._parts.pop(item.notification.id, None)

    def _remember(self, item: WorkItem) -> None:
        if item.open_targets is not None:
            self._parts[item.notification.id] = self._is_rest_whole(item)

    def _is_rest_whole(self, item: WorkItem) -> bool:
        """Tell whether each target that the lease does not have was sent."""
        return self._parts.get(item.notification.id, True) and all(each.status in _SENT for each in item.siblings)

    def _hold(self, lease: Lease, held: Sequence[WorkItem], wait_s: float) -> None:
        """Keep refused items from being leased for a moment, then give them back."""

        async def give_back() -> None:
            await asyncio.sleep(wait_s)
            try:
                await self._work.settle(lease, [Settled(each.notification, given_back=True) for each in held])
            except Unavailable:
                self._hold(lease, held, HELD_S)

        task = asyncio.get_running_loop().create_task(give_back())
        self._giving_back.add(task)
        task.add_done_callback(self._giving_back.discard)

    def _status_of(self, begun: _Begun, settled: Settled) -> RecordStatus | None:
        """Return what the record is to say; None while something of the lease is still to be settled."""
        if begun.open is None and settled.targets is not None:
            sendable = [each for each in settled.targets if each.suppressed is None]
            begun.open = {each.n for each in sendable if each.waits is None}
            begun.is_whole &= len(begun.open) == len(sendable)
        for change in settled.changes:
            _note(begun, change)
        if settled.given_back:
            if begun.open is not None:
                self._parts[settled.notification.id] = begun.is_whole
            return RecordStatus.FAILED
        if settled.verdict is not None:
            return RecordStatus.FAILED
        if begun.open is None or begun.open:
            return None
        return RecordStatus.DELIVERED if begun.is_whole else RecordStatus.FAILED


def _note(begun: _Begun, change: Change) -> None:
    settlement = change.settlement
    if isinstance(settlement, Intent):
        return
    if begun.open is not None:
        begun.open.discard(change.n)
    begun.is_whole &= isinstance(settlement, Sent)
    if isinstance(settlement, Again) and settlement.spends_attempt:
        begun.retries += 1


def _round_of(item: WorkItem) -> Round:
    retries = max((each.retries for each in item.open_targets or ()), default=0)
    return Round(item.notification.expires_at, retries)


def _delivered(item: WorkItem, now: Instant) -> Settled:
    """Settle what was delivered before its worker could write that."""
    if item.open_targets is None:
        return Settled(item.notification, verdict=NotificationStatus.SENT)
    changes = tuple(Change(each.n, each.attempt + 1, Sent(""), now) for each in item.open_targets)
    return Settled(item.notification, changes)
