"""Forgetting a user in memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from tests.memory.store import LeasedPart, MemoryStore, StoredRow
from waypost.domain.content import Content
from waypost.domain.delivery import Receipt
from waypost.domain.ids import AppId, DeviceId, NotificationId, UserId, created_at
from waypost.domain.time import Instant
from waypost.ports.erasure import ERASED_DEVICE, Erasure


class MemoryErasures:
    """See Erasures."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store

    async def ask(self, erasure: Erasure) -> Erasure:
        """See Erasures."""
        return self._store.erasures.setdefault((erasure.app, erasure.user_id), erasure)

    async def of(self, app: AppId, user: UserId) -> Erasure | None:
        """See Erasures."""
        return self._store.erasures.get((app, user))

    async def standing(self, n: int, after: NotificationId | None = None) -> Sequence[Erasure]:
        """See Erasures."""
        orders = sorted(self._store.erasures.values(), key=lambda order: order.id)
        return [order for order in orders if after is None or order.id > after][:n]

    async def unfinished(self, erasure: Erasure, n: int) -> Sequence[NotificationId]:
        """See Erasures."""
        return [row.notification.id for row in self._rows(erasure) if not row.is_final][:n]

    async def blank(self, erasure: Erasure, n: int) -> int:
        """See Erasures."""
        rows = [row for row in self._rows(erasure) if row.is_final][:n]
        for row in rows:
            row.notification = msgspec.structs.replace(
                row.notification,
                user_id=erasure.tombstone,
                caller=erasure.caller_after(row.notification.caller),
                content=Content(),
                device_ids=(),
            )
            row.receipts = {number: _blanked(receipt) for number, receipt in row.receipts.items()}
            self._store.feed.pop(row.notification.id, None)
        return len(rows)

    async def delete(self, erasure: Erasure, n: int) -> int:
        """See Erasures."""
        final = [row.notification.id for row in self._rows(erasure) if row.is_final][:n]
        for one in final:
            self._store.drop(one)
        return len(final)

    async def strike(self, erasure: Erasure) -> None:
        """See Erasures."""
        self._store.opted_out.discard((erasure.app, erasure.user_id))
        for job in self._store.jobs.values():
            if job.job.app == erasure.app:
                job.recipients.pop(erasure.user_id, None)
        for told in list(self._store.told.values()):
            whose = (told.notification.app, told.notification.user_id)
            if whose == (erasure.app, erasure.user_id) and LeasedPart(told.notification.id) not in self._store.holds:
                del self._store.told[told.notification.id]
                self._store.jobs[told.job].total -= 1
                self._store.jobs[told.job].left_out += 1

    async def finish(self, erasure: Erasure, at: Instant) -> None:
        """See Erasures."""
        self._store.erasures.pop((erasure.app, erasure.user_id), None)

    def _rows(self, erasure: Erasure) -> Iterator[StoredRow]:
        for row in self._store.rows.values():
            told = row.notification
            if (told.app, told.user_id) == (erasure.app, erasure.user_id) and created_at(told.id) <= erasure.asked_at:
                yield row


def _blanked(receipt: Receipt) -> Receipt:
    return msgspec.structs.replace(
        receipt, device_id=DeviceId(ERASED_DEVICE), provider_id=None, reason=None, dead=False, attempts=()
    )
