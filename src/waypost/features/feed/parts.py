"""The parts that the feed adds to a worker."""

from __future__ import annotations

from collections.abc import Sequence

from waypost.channels.inapp.settings import CHANNEL
from waypost.config import Config
from waypost.domain.address import FEED
from waypost.domain.credential import channel_of
from waypost.domain.moves import DeliveryMoved
from waypost.domain.status import DeliveryStatus
from waypost.domain.time import Instant
from waypost.features.feed import live_routes, sdk_routes
from waypost.features.feed.badges import facts, is_used, render
from waypost.features.feed.dismissing import EVERY_S, tell_reads
from waypost.features.feed.routes import ROUTES
from waypost.features.parts import FeatureDuty, Ground, Parts
from waypost.pipeline.sweep import PAGE
from waypost.ports.erasure import Erasure
from waypost.ports.feed import PLACES_A_ROW, NewEntry
from waypost.ports.journal import JournalRow
from waypost.runtime.roles import Role
from waypost.stores.sql.feed import STAMPS, TABLE, TAGS
from waypost.stores.sql.feed_secret import TABLE as SECRET
from waypost.stores.sql.notification_reads import TABLE as READS


async def bring(ground: Ground, rows: Sequence[JournalRow]) -> None:
    """Bring into the feeds what *rows* say was sent there, and tell who follows them; may be repeated."""
    entries = [
        NewEntry(move.app, move.user_id, move.notification_id, move.n, row.position * PLACES_A_ROW + place, move.at)
        for row in rows
        for place, move in enumerate(row.moves)
        if isinstance(move, DeliveryMoved) and move.device_id == FEED and move.after is DeliveryStatus.SENT
    ]
    if entries:
        await ground.store.feed.add(entries)
        if ground.live is not None:
            await ground.live.brought(entries)


async def drop_hidden(ground: Ground, now: Instant) -> int:
    """Delete a page of the notifications that users deleted, where ``retention.hidden`` says so."""
    return await ground.store.retention.drop_hidden(PAGE) if ground.config.retention.hidden == "delete" else 0


def has_feeds(config: Config) -> bool:
    """Tell whether any app has feeds."""
    return any(channel_of(slot) == CHANNEL for app in config.apps.values() for slot in app.senders)


async def empty(ground: Ground, erasure: Erasure) -> None:
    """Delete the feed of the user."""
    await ground.store.feed.erase(erasure.app, erasure.user_id)
    if ground.pages is not None:
        await ground.pages.forget(erasure.app, erasure.user_id)


PARTS = Parts(
    tables=(TABLE, TAGS, STAMPS, SECRET, READS),
    routes=(*ROUTES, *live_routes.ROUTES, *sdk_routes.ROUTES),
    tags={"Feed": "What a user finds in the app."},
    readers={"feed": bring},
    naming=lambda _: (FEED,),
    prompt=has_feeds,
    duties=(FeatureDuty("reads", Role.REPORT, EVERY_S, tell_reads),),
    is_used=is_used,
    facts=facts,
    renders=render,
    erases=empty,
    drops=drop_hidden,
)
