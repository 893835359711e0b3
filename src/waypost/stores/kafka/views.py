"""The reads where the log is ahead of the ledger: what is accepted and not recorded yet is pending."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from waypost.domain.content import Content
from waypost.domain.ids import AppId, CallerId, NotificationId, UserId, created_at
from waypost.domain.notification import Lane, Notification
from waypost.domain.status import NotificationStatus
from waypost.ports.peers import Peers
from waypost.ports.views import (
    Addressed,
    DeadLetter,
    DeadQuery,
    HistoryQuery,
    NotificationDetail,
    NotificationRecord,
    Page,
    PageQuery,
    Views,
)
from waypost.stores.kafka.unrecorded import Unrecorded

_TOPIC = "accepted"
_PATIENCE_S = 0.5

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Notification).decode


class LogViews:
    """The ledger's reads, and for unrecorded notifications the memory of this machine's workers.

    What none of them accepted may have been accepted on another machine, or before a restart, where it is younger than
    the recorder's position.
    """

    def __init__(
        self, ledger: Views, unrecorded: Unrecorded, recent: Mapping[NotificationId, Notification], peers: Peers
    ) -> None:
        self._ledger = ledger
        self._unrecorded = unrecorded
        self._recent = recent
        self._peers = peers
        peers.on(_TOPIC, self._answer)

    async def detail(self, app: AppId, notification_id: NotificationId) -> NotificationDetail | None:
        """See Views."""
        detail = await self._ledger.detail(app, notification_id)
        if detail is not None:
            return detail
        made = self._recent.get(notification_id)
        if made is None:
            answers = await self._peers.ask(_TOPIC, notification_id, _PATIENCE_S)
            made = _decode(answers[0]) if answers else None
        if made is not None:
            return (
                NotificationDetail(NotificationRecord(made, NotificationStatus.PENDING, recorded=False))
                if made.app == app
                else None
            )
        if await self._unrecorded.among([notification_id]):
            return NotificationDetail(_somewhere(app, notification_id))
        return await self._ledger.detail(
            app, notification_id
        )  # recorded since it was asked for first, or never accepted

    async def history(self, query: HistoryQuery) -> list[NotificationRecord]:
        """See Views; what is recorded."""
        return await self._ledger.history(query)

    async def page(self, query: PageQuery) -> Page:
        """See Views; what is recorded."""
        return await self._ledger.page(query)

    async def dead(self, query: DeadQuery) -> list[DeadLetter]:
        """See Views."""
        return await self._ledger.dead(query)

    async def balance(self, app: AppId | None = None) -> Mapping[NotificationStatus, int]:
        """See Views; what is recorded."""
        return await self._ledger.balance(app)

    async def statuses(self, app: AppId, ids: Sequence[NotificationId]) -> dict[NotificationId, NotificationStatus]:
        """See Views; what is recorded."""
        return await self._ledger.statuses(app, ids)

    async def addressed(self, app: AppId, ids: Sequence[NotificationId]) -> dict[NotificationId, Addressed]:
        """See Views; what is recorded."""
        return await self._ledger.addressed(app, ids)

    def _answer(self, body: bytes) -> bytes | None:
        """Answer what a sibling asks for; keep silent where it was not accepted here."""
        made = self._recent.get(NotificationId(body))
        return None if made is None else _encode(made)


def _somewhere(app: AppId, notification_id: NotificationId) -> NotificationRecord:
    """Build the record of an id of which nobody here knows more than that it may be in the log."""
    at = created_at(notification_id)
    blank = Notification(notification_id, app, CallerId(""), UserId(""), Content(), at, at, 0, Lane.NORMAL)
    return NotificationRecord(blank, NotificationStatus.PENDING, recorded=False, content_known=False)
