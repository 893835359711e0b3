"""Report: what follows from settled work, off the delivery path, by tailing the journal at least once."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from waypost.domain.ids import AppId, DeviceId, UserId
from waypost.domain.moves import DeliveryMoved
from waypost.domain.status import FINAL, NotificationStatus
from waypost.domain.time import Instant
from waypost.ports.devices import Devices, Eviction, Use
from waypost.ports.journal import Journal

READER = "registry"
PAGE = 200


class RegistryNews(Struct, frozen=True):
    """What a page of the journal says about devices."""

    evictions: tuple[Eviction, ...]
    uses: tuple[Use, ...]


def registry_news(moves: Iterable[DeliveryMoved]) -> RegistryNews:
    """Each dead token once and each device's latest use. Pure."""
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
        tuple(Eviction(app, token, since) for (app, token), since in evictions.items()),
        tuple(Use(app, user_id, device_id, at) for (app, user_id, device_id), at in uses.items()),
    )


class Reported(Struct, frozen=True):
    """What one page of the journal came to."""

    rows: int = 0
    evicted: int = 0
    finished: tuple[tuple[AppId, NotificationStatus], ...] = ()
    """The app and final status of each notification that finished."""


async def report(journal: Journal, devices: Devices) -> Reported:
    """Bring the registry up to date with one page of the journal, and say what finished in it."""
    rows = await journal.read(await journal.position(READER), PAGE)
    if not rows:
        return Reported()
    deliveries: list[DeliveryMoved] = []
    ended: list[tuple[AppId, NotificationStatus]] = []
    for row in rows:
        for move in row.moves:
            if isinstance(move, DeliveryMoved):
                deliveries.append(move)
            elif move.after in FINAL:
                ended.append((move.app, move.after))
    news = registry_news(deliveries)
    evicted = len(await devices.evict(news.evictions)) if news.evictions else 0
    if news.uses:
        await devices.touch(news.uses)
    await journal.advance(READER, rows[-1].position)
    return Reported(len(rows), evicted, tuple(ended))
