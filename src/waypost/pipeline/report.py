"""Report: what follows from settled work, off the delivery path, by tailing the journal at least once."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from waypost.domain.ids import AppId, DeviceId, UserId
from waypost.domain.status import FINAL, DeliveryStatus, NotificationStatus
from waypost.domain.time import Instant
from waypost.ports.devices import Devices, Eviction, Use
from waypost.ports.journal import DeliveryMoved, Journal, Moved, NotificationMoved

READER = "registry"
PAGE = 200


class RegistryNews(Struct, frozen=True):
    """What a page of the journal says about devices."""

    evictions: tuple[Eviction, ...]
    uses: tuple[Use, ...]


def registry_news(moves: Iterable[Moved]) -> RegistryNews:
    """Each dead token once and each device's latest use. Pure."""
    evictions: dict[tuple[AppId, bytes], Instant] = {}
    uses: dict[tuple[AppId, UserId, DeviceId], Instant] = {}
    for move in moves:
        if not isinstance(move, DeliveryMoved):
            continue
        if move.gone_since is not None and move.token_hash is not None:
            token = (move.app, move.token_hash)
            evictions[token] = max(evictions.get(token, move.gone_since), move.gone_since)
        elif move.after is DeliveryStatus.SENT:
            device = (move.app, move.user_id, move.device_id)
            uses[device] = max(uses.get(device, move.at), move.at)
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
    moves = [move for row in rows for move in row.moves]
    news = registry_news(moves)
    evicted = await devices.evict(news.evictions) if news.evictions else 0
    if news.uses:
        await devices.touch(news.uses)
    await journal.advance(READER, rows[-1].position)
    ended = (move for move in moves if isinstance(move, NotificationMoved) and move.after in FINAL)
    return Reported(len(rows), evicted, tuple((move.app, move.after) for move in ended))
