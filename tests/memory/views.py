"""The reads, in memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice

from tests.memory.store import MemoryStore, StoredRow
from waypost.domain.bulk import JobState
from waypost.domain.content import Kind
from waypost.domain.ids import AppId, NotificationId
from waypost.domain.status import NotificationStatus
from waypost.domain.vocabulary import waits
from waypost.ports.clock import Clock
from waypost.ports.views import (
    Addressed,
    DeadLetter,
    DeadQuery,
    HistoryQuery,
    Marked,
    NotificationDetail,
    NotificationRecord,
    Page,
    PageQuery,
)

DUPLICATES_SHOWN = 100


class MemoryViews:
    """Reads the rows that Work writes."""

    def __init__(self, store: MemoryStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def detail(self, app: AppId, notification_id: NotificationId) -> NotificationDetail | None:
        """See Views."""
        told = self._store.told.get(notification_id)
        if told is not None and told.notification.app == app:
            is_cancelled = self._store.jobs[told.job].state is JobState.CANCELLED
            status = NotificationStatus.CANCELLED if is_cancelled else NotificationStatus.PENDING
            return NotificationDetail(
                NotificationRecord(told.notification, status, self._store.jobs[told.job].finished_at)
            )
        row = self._store.rows.get(notification_id)
        if row is None or row.notification.app != app:
            return None
        duplicates = (other.notification.id for other in self._rows() if other.duplicate_of == notification_id)
        shown = tuple(islice(duplicates, DUPLICATES_SHOWN))
        return NotificationDetail(self._record(row), tuple(row.receipts.values()), shown, self._marked(row))

    async def history(self, query: HistoryQuery) -> list[NotificationRecord]:
        """See Views."""
        rows = (row for row in self._newest_first(query.app) if query.before is None or _id(row) < query.before)
        records = (self._record(row) for row in rows if query.user_id in (None, row.notification.user_id))
        chosen = (record for record in records if not query.statuses or record.status in query.statuses)
        return list(islice(chosen, query.limit))

    async def page(self, query: PageQuery) -> Page:
        """See Views."""
        details = [
            NotificationDetail(self._record(row), tuple(row.receipts.values()), marked=self._marked(row))
            for row in self._newest_first(query.app)
            if row.notification.user_id == query.user_id and row.notification.kind is Kind.VISIBLE
        ]
        seen = [detail for detail in details if detail.marked.hidden_at is None and _is_on_page(detail, query)]
        return Page(tuple(seen[query.offset : query.offset + query.limit]), len(seen))

    async def dead(self, query: DeadQuery) -> list[DeadLetter]:
        """See Views."""
        letters = (
            DeadLetter(self._record(row), receipt)
            for row in self._newest_first(query.app)
            for receipt in sorted(row.receipts.values(), key=lambda receipt: -receipt.n)
            if receipt.dead
        )
        return list(islice((letter for letter in letters if _is_asked_for(letter, query)), query.limit))

    async def balance(self, app: AppId | None = None) -> Mapping[NotificationStatus, int]:
        """See Views."""
        return Counter(row.status for row in self._rows() if app in (None, row.notification.app))

    async def statuses(self, app: AppId, ids: Sequence[NotificationId]) -> dict[NotificationId, NotificationStatus]:
        """See Views."""
        rows = (self._store.rows.get(notification_id) for notification_id in ids)
        return {_id(row): self._status(row) for row in rows if row is not None and row.notification.app == app}

    async def addressed(self, app: AppId, ids: Sequence[NotificationId]) -> dict[NotificationId, Addressed]:
        """See Views."""
        rows = [row for each in ids if (row := self._store.rows.get(each)) is not None and row.notification.app == app]
        return {
            _id(row): Addressed(
                row.notification.user_id,
                {each.device_id: n for n, each in sorted((row.progress.receipts or {}).items(), reverse=True)},
            )
            for row in rows
        }

    def _marked(self, row: StoredRow) -> Marked:
        marks = self._store.feed.get(_id(row))
        return Marked() if marks is None else Marked(marks.read_at, marks.hidden_at)

    def _rows(self) -> Iterable[StoredRow]:
        return self._store.rows.values()

    def _newest_first(self, app: AppId) -> list[StoredRow]:
        return sorted((row for row in self._rows() if row.notification.app == app), key=_id, reverse=True)

    def _record(self, row: StoredRow) -> NotificationRecord:
        return NotificationRecord(
            row.notification, self._status(row), row.finished_at, row.reason, row.duplicate_of, row.round
        )

    def _status(self, row: StoredRow) -> NotificationStatus:
        if row.is_final:
            return row.status
        now = self._clock.now()
        if row.due_at is None or any(self._store.held_parts(row, now)):
            return NotificationStatus.PROCESSING
        return NotificationStatus.SCHEDULED if row.due_at > now else NotificationStatus.PENDING


def _id(row: StoredRow) -> NotificationId:
    return row.notification.id


def _is_on_page(detail: NotificationDetail, query: PageQuery) -> bool:
    status = detail.record.status
    is_left_out = status is NotificationStatus.PROCESSING and query.waiting not in (None, waits(detail.receipts))
    of_type = not query.types or detail.record.notification.content.type in query.types
    return status in query.statuses and of_type and not is_left_out


def _is_asked_for(letter: DeadLetter, query: DeadQuery) -> bool:
    notification, receipt = letter.record.notification, letter.receipt
    return (
        query.code in (None, receipt.code)
        and query.user_id in (None, notification.user_id)
        and (query.since is None or (receipt.resolved_at or 0) >= query.since)
        and (query.before is None or (notification.id, receipt.n) < query.before)
    )
