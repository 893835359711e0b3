"""The parts that webhooks out add to a worker: a reader of the journal, and what it still has to tell."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from waypost.channels.webhook.settings import CHANNEL, WebhookSettings
from waypost.config import Config
from waypost.domain.ids import AppId, DeviceId, NotificationId
from waypost.domain.moves import DeliveryMoved, Moved
from waypost.domain.notification import Lane
from waypost.domain.status import FINAL
from waypost.domain.time import DAY_MS, Instant, later
from waypost.features.parts import Ground, Parts
from waypost.features.webhooks.events import event_of, is_own, is_told, notification_of
from waypost.features.webhooks.routes import ROUTES
from waypost.pipeline.sweep import PAGE
from waypost.ports.journal import JournalRow
from waypost.ports.views import NotificationDetail
from waypost.ports.work import NewNotification
from waypost.stores.sql.webhook_queue import DISABLED, QUEUE, WebhookEnded, WebhookEvent, WebhookGone, WebhookNews
from waypost.telemetry import Event, Metric

GONE: Final = "http_410"
DISABLED_MS: Final = DAY_MS
"""Milliseconds for which a URL that answered 410 is told nothing."""
_MOVES_A_ROW: Final = 1_000_000


async def tell(ground: Ground, rows: Sequence[JournalRow]) -> None:
    """Queue what *rows* say to the webhooks that want it, and send what is first in line of each notification."""
    settings = {app: found for app in ground.config.apps if (found := _settings(ground.config, app)) is not None}
    for app in settings:  # there before the first one, so that an alert sees it as a change
        ground.telemetry.count(Metric.WEBHOOKS_DISABLED, 0, app=app)
    news: list[WebhookNews] = []
    details: dict[NotificationId, NotificationDetail | None] = {}
    for row in rows:
        for place, move in enumerate(row.moves):
            if move.app not in settings:
                continue
            if is_own(move):
                news += _end(move)
            elif is_told(move, frozenset(settings[move.app].statuses)):
                event = await _event(ground, move, row.position * _MOVES_A_ROW + place, settings[move.app], details)
                news += [] if event is None else [event]
    for app, url_hash in {(each.app, each.url_hash) for each in news if isinstance(each, WebhookGone)}:
        ground.telemetry.event(Event.WEBHOOK_DISABLED, app=app, url=url_hash.hex()[:16])
        ground.telemetry.count(Metric.WEBHOOKS_DISABLED, app=app)
    first = await ground.store.webhook_queue.take(news)
    if first:
        await ground.work.accept([NewNotification(notification_of(each)) for each in first])
    await ground.store.webhook_queue.drop(news)


async def enable_again(ground: Ground, now: Instant) -> int:
    """Enable a page of URLs again that were disabled a day ago."""
    return await ground.store.webhook_queue.enable(later(now, -DISABLED_MS), PAGE)


def _sought(config: Config) -> Collection[DeviceId] | None:
    """Look for nobody's moves where no app has webhooks."""
    return None if any(_settings(config, app) is not None for app in config.apps) else ()


def _settings(config: Config, app: AppId) -> WebhookSettings | None:
    found = config.apps[app].senders.get(CHANNEL)
    return found if isinstance(found, WebhookSettings) else None


async def _event(
    ground: Ground,
    move: Moved,
    seq: int,
    settings: WebhookSettings,
    details: dict[NotificationId, NotificationDetail | None],
) -> WebhookEvent | None:
    """Make the event of *move*, where its notification or its app has a URL; bulk jobs are told of by none."""
    if move.notification_id not in details:
        details[move.notification_id] = await ground.store.views.detail(move.app, move.notification_id)
    detail = details[move.notification_id]
    if detail is None or detail.record.notification.lane is Lane.BULK:
        return None
    url = detail.record.notification.content.webhook_url or settings.status_url
    return None if url is None else event_of(move, seq, detail, url)


def _end(move: Moved) -> list[WebhookNews]:
    """Note that an event was told or given up, and that its URL wants no more where it said so."""
    if not isinstance(move, DeliveryMoved):
        return [WebhookEnded(move.notification_id)] if move.after in FINAL else []
    if move.code != GONE or move.token_hash is None:
        return []
    return [WebhookGone(move.app, move.token_hash, move.at)]


PARTS = Parts(
    tables=(QUEUE, DISABLED),
    routes=(*ROUTES,),
    tags={"Webhooks": "What was told to the URLs that hear of status changes."},
    readers={"webhooks": tell},
    naming=_sought,
    drops=enable_again,
)
