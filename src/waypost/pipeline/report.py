"""Report: the consequences of settled work, off the delivery path, by tailing the journal at least once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from typing import TypeVar

from msgspec import Struct

from waypost.domain.errors import Unavailable
from waypost.domain.ids import AppId, DeviceId, UserId
from waypost.domain.moves import DeliveryMoved
from waypost.domain.status import FINAL, NotificationStatus
from waypost.domain.time import Instant
from waypost.ports.devices import Devices, Eviction, Use
from waypost.ports.journal import Journal

READER = "registry"
PAGE = 200
PART = 500
"""Moves after which the registry is told, before the next rows are looked through: others want their turn, too."""

News = TypeVar("News", Eviction, Use)
Result = TypeVar("Result")


class RegistryNews(Struct, frozen=True):
    """The news about devices in a page of the journal."""

    evictions: tuple[Eviction, ...]
    uses: tuple[Use, ...]


def registry_news(moves: Iterable[DeliveryMoved], deleting: Collection[AppId] = ()) -> RegistryNews:
    """Gather each dead token once and each device's latest use from moves; *deleting* are apps that keep none. Pure.

    Uses come in the order in which registries keep devices: who writes them changes each page of those once.
    """
    evictions: dict[tuple[AppId, bytes], Instant] = {}
    uses: dict[tuple[AppId, UserId, DeviceId], Instant] = {}
    for move in moves:
        if move.gone_since is not None and move.token_hash is not None:
            token = (move.app, move.token_hash)
            evictions[token] = max(evictions.get(token, move.gone_since), move.gone_since)
        elif move.is_use:
            device = (move.app, move.user_id, move.device_id)
            used_at = uses.get(device)
            if used_at is None or used_at < move.at:
                uses[device] = move.at
    return RegistryNews(
        tuple(Eviction(app, token, since, app in deleting) for (app, token), since in evictions.items()),
        tuple(Use(*device, uses[device]) for device in sorted(uses)),
    )


class Unreported(Struct, frozen=True):
    """A device of *app* whose change the registry could not store, and the kind of error."""

    app: AppId
    error: str


class Reported(Struct, frozen=True):
    """The result of reporting one page of the journal."""

    rows: int = 0
    evicted: int = 0
    failed: tuple[Unreported, ...] = ()
    finished: tuple[tuple[AppId, NotificationStatus], ...] = ()
    """The app and final status of each notification that finished."""


async def report(journal: Journal, devices: Devices, deleting: Collection[AppId] = ()) -> Reported:
    """Bring the registry up to date with one page of the journal, and say what finished in it.

    Dead devices of the apps in *deleting* are deleted, those of others deactivated.

    A device that the registry cannot be told of is passed over; all others are told of.
    """
    rows = await journal.read(await journal.position(READER), PAGE)
    if not rows:
        return Reported()
    evicted = looked_through = 0
    failed: list[Unreported] = []
    ended: list[tuple[AppId, NotificationStatus]] = []
    deliveries: list[DeliveryMoved] = []
    for row in rows:
        for move in row.moves:
            if isinstance(move, DeliveryMoved):
                deliveries.append(move)
            elif move.after in FINAL:
                ended.append((move.app, move.after))
        looked_through += len(row.moves)
        if looked_through < PART and row is not rows[-1]:
            continue
        news = registry_news(deliveries, deleting)
        evicted += sum([len(gone) for gone in await _told(devices.evict, news.evictions, failed)])
        await _told(devices.touch, news.uses, failed)
        await asyncio.sleep(0)
        looked_through = 0
        deliveries.clear()
    await journal.advance(READER, rows[-1].position)
    return Reported(len(rows), evicted, tuple(failed), tuple(ended))


async def _told(
    tell: Callable[[Sequence[News]], Awaitable[Result]], news: Sequence[News], failed: list[Unreported]
) -> list[Result]:
    """Tell all of *news* together, or after a failure each by itself; add to *failed* what cannot be told."""
    if not news:
        return []
    try:
        return [await tell(news)]
    except Unavailable:
        raise
    except Exception as surprise:  # noqa: BLE001 - whatever is wrong with one must not stop the others
        if len(news) == 1:
            failed.append(Unreported(news[0].app, type(surprise).__name__))
            return []
    return [result for each in news for result in await _told(tell, [each], failed)]
