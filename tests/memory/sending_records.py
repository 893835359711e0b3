"""The records of senders in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from waypost.domain.ids import NotificationId
from waypost.domain.sending_record import RecordStatus, SendingRecord
from waypost.domain.time import Instant, later
from waypost.ports.clock import Clock
from waypost.ports.sending_records import Acquired, Right


class MemorySendingRecords:
    """The records of one process; see SendingRecords."""

    def __init__(self, clock: Clock, lock_ms: int, kept_ms: int) -> None:
        self._clock = clock
        self._lock_ms = lock_ms
        self._kept_ms = kept_ms
        self._kept: dict[NotificationId, tuple[SendingRecord, Instant]] = {}

    async def acquire(self, retries: Mapping[NotificationId, int]) -> Sequence[Acquired]:
        """See SendingRecords."""
        return [self._acquire(one, count) for one, count in retries.items()]

    async def note(self, came: Mapping[NotificationId, tuple[RecordStatus, int]]) -> None:
        """See SendingRecords."""
        for one, (status, count) in came.items():
            kept = self._of(one)
            if kept is None or kept[0].status is not RecordStatus.DELIVERED:
                self._keep(one, status, count, self._kept_ms)

    async def read(self, ids: Sequence[NotificationId]) -> dict[NotificationId, SendingRecord]:
        """See SendingRecords."""
        found = {one: self._of(one) for one in ids}
        return {one: record[0] for one, record in found.items() if record is not None}

    def _acquire(self, one: NotificationId, count: int) -> Acquired:
        kept = self._of(one)
        if kept is None or kept[0].status is RecordStatus.FAILED:
            self._keep(one, RecordStatus.PROCESSING, count, self._lock_ms)
            return Acquired(Right.FIRST if kept is None else Right.RETRY)
        if kept[0].status is RecordStatus.DELIVERED:
            return Acquired(Right.DELIVERED)
        return Acquired(Right.HELD, kept[1] - self._clock.now())

    def _of(self, one: NotificationId) -> tuple[SendingRecord, Instant] | None:
        kept = self._kept.get(one)
        return None if kept is None or kept[1] <= self._clock.now() else kept

    def _keep(self, one: NotificationId, status: RecordStatus, count: int, kept_ms: int) -> None:
        now = self._clock.now()
        self._kept[one] = SendingRecord(status, count, now), later(now, kept_ms)
