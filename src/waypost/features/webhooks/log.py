"""The log of webhooks: what was posted to one URL, newest first, and which of it a replay takes."""

from __future__ import annotations

import asyncio
import hashlib
from typing import Any, Final

from msgspec import Struct

from waypost.channels.webhook.settings import CHANNEL
from waypost.domain.ids import AppId, NotificationId, UserId
from waypost.domain.status import NotificationStatus
from waypost.domain.time import Instant
from waypost.features.webhooks.events import CALLER, URL_KIND
from waypost.ports.views import HistoryQuery, NotificationDetail, NotificationRecord, Views

FAILED: Final = (NotificationStatus.FAILED, NotificationStatus.EXPIRED, NotificationStatus.UNKNOWN)
"""What a replay takes where it is not told to take what was sent, too."""
_ID_BYTES: Final = 16
_TIME_BYTES: Final = 6


class LogQuery(Struct, frozen=True):
    """A filter for events to one URL: newest first, older than *before*."""

    app: AppId
    endpoint: str
    """The SHA-256 of the URL in hex, which stands for it: a URL is often a secret."""
    statuses: tuple[NotificationStatus, ...] = ()
    since: Instant | None = None
    until: Instant | None = None
    before: NotificationId | None = None
    limit: int = 50


class Told(Struct, frozen=True):
    """A page of the log, and where the next begins; None at the end."""

    records: tuple[NotificationRecord, ...]
    next: NotificationId | None


def endpoint_of(url: str) -> str:
    """Return what stands for a URL."""
    return hashlib.sha256(url.encode()).hexdigest()


async def page(views: Views, query: LogQuery) -> Told:
    """Read a page; messages to the same URL that tell of nothing are passed over."""
    user = UserId(f"{CHANNEL}:{URL_KIND}:{query.endpoint}")
    bounds = [each for each in (query.before, _first_at(query.until)) if each is not None]
    asked = HistoryQuery(query.app, user, query.statuses, min(bounds, default=None), query.limit)
    found = await views.history(asked)
    since = query.since or Instant(0)
    young = [each for each in found if each.notification.created_at >= since]
    is_last = len(found) < query.limit or len(young) < len(found)
    events = tuple(each for each in young if each.notification.caller == CALLER)
    return Told(events, None if is_last else found[-1].notification.id)


async def with_receipts(views: Views, told: Told) -> list[NotificationDetail]:
    """Read what became of each event of a page."""
    details = await asyncio.gather(
        *(views.detail(each.notification.app, each.notification.id) for each in told.records)
    )
    return [each for each in details if each is not None]


async def events_among(views: Views, app: AppId, ids: list[NotificationId]) -> list[NotificationId]:
    """Return those of *ids* that are events of an app."""
    details = await asyncio.gather(*(views.detail(app, each) for each in ids))
    known = [each.record.notification for each in details if each is not None]
    return [each.id for each in known if each.caller == CALLER]


def _first_at(at: Instant | None) -> NotificationId | None:
    """Return the id below all that were made at *at* or later."""
    return None if at is None else NotificationId(at.to_bytes(_TIME_BYTES, "big") + bytes(_ID_BYTES - _TIME_BYTES))


def said_by(record: NotificationRecord) -> dict[str, Any]:
    """Return the body that an event was posted with."""
    return record.notification.content.overrides.get(CHANNEL, {})
