"""The records of senders in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from waypost.domain.ids import NotificationId
from waypost.domain.sending_record import RecordStatus, SendingRecord
from waypost.domain.time import Instant, later
from waypost.ports.clock import Clock
from waypost.ports.sending_records import Acquired, Right, Round


class MemorySendingRecords:
    """The records of one process; see SendingRecords."""

    def __init__(self, clock: Clock, lock_ms: int, kept_ms: int) -> None:
        self._clock = clock
        self._lock_ms = lock_ms
        self._kept_ms = kept_ms
        self._kept: dict[NotificationId, tuple[SendingRecord, Instant]] = {}

    async def acquire(self, rounds: Mapping[NotificationId, Round]) -> Sequence[Acquired]:
        """See SendingRecords."""
        return [self._acquire(one, of) for one, of in rounds.items()]

    async def note(self, came: Mapping[NotificationId, tuple[RecordStatus, Round]]) -> None:
        """See SendingRecords."""
        for one, (status, of) in came.items():
            if not self._is_delivered(one, of):
                self._keep(one, status, of, self._kept_ms)

    async def read(self, ids: Sequence[NotificationId]) -> dict[NotificationId, SendingRecord]:
        """See SendingRecords."""
        found = {one: self._of(one) for one in ids}
        return {one: record[0] for one, record in found.items() if record is not None}

    def _acquire(self, one: NotificationId, of: Round) -> Acquired:
        kept = self._of(one)
        if kept is not None and kept[0].status is RecordStatus.PROCESSING:
            return Acquired(Right.HELD, kept[1] - self._clock.now())
        if self._is_delivered(one, of):
            return Acquired(Right.DELIVERED)
        self._keep(one, RecordStatus.PROCESSING, of, self._lock_ms)
        return Acquired(Right.FIRST if kept is None else Right.RETRY)

    def _is_delivered(self, one: NotificationId, of: Round) -> bool:
        kept = self._of(one)
        return kept is not None and kept[0].status is RecordStatus.DELIVERED and kept[0].expires_at == of.expires_at

    def _of(self, one: NotificationId) -> tuple[SendingRecord, Instant] | None:
        kept = self._kept.get(one)
        return None if kept is None or kept[1] <= self._clock.now() else kept

    def _keep(self, one: NotificationId, status: RecordStatus, of: Round, kept_ms: int) -> None:
        now = self._clock.now()
        self._kept[one] = SendingRecord(status, of.retries, now, of.expires_at), later(now, kept_ms)
