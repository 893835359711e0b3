"""The way to the hubs of other processes where it is known who holds whom: nobody else is told."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from waypost.domain.errors import Unavailable
from waypost.entrypoints.live.chain import Brought, Chain, encode
from waypost.entrypoints.live.connection import Reader
from waypost.entrypoints.live.outward import Broadcast, Listener
from waypost.ports.feed import NewEntry
from waypost.ports.gateways import GatewayId, Gateways, User
from waypost.ports.live import Changed

_BROUGHT: Final = b"b"
_CHANGED: Final = b"c"
"""The first byte of a message says what follows it."""


class Addressed:
    """Tells the processes that hold a user, each by a chain of its own (fulfils Outward).

    While the register of them is away all are told, as a broadcast.
    """

    def __init__(self, gateways: Gateways, broadcast: Broadcast) -> None:
        self._gateways = gateways
        self._broadcast = broadcast
        self._chains: dict[GatewayId, Chain] = {}

    async def start(self, listener: Listener) -> None:
        """See Outward."""

        def take(body: bytes) -> None:
            if body.startswith(_BROUGHT):
                listener.hear(_brought(body[1:]))
            else:
                listener.show(_changed(body[1:]))

        await self._broadcast.start(listener)
        await self._gateways.start(take, listener.read_for_all)

    async def stop(self) -> None:
        """See Outward."""
        await self._gateways.stop()

    async def arrived(self, readers: Sequence[Reader]) -> None:
        """See Outward."""
        await self._gateways.hold(readers)

    def departed(self, reader: Reader) -> None:
        """See Outward."""
        self._gateways.release(reader)

    async def brought(self, entries: Sequence[NewEntry]) -> None:
        """See Outward."""
        try:
            held = await self._gateways.holders(list({(each.app, each.user_id): None for each in entries}))
            of_each: dict[GatewayId, list[NewEntry]] = {}
            for entry in entries:
                for gateway in held[entry.app, entry.user_id]:
                    of_each.setdefault(gateway, []).append(entry)
            messages = [
                (gateway, _BROUGHT + encode(link))
                for gateway, its in of_each.items()
                for link in self._chains.setdefault(gateway, Chain()).links(its)
            ]
            await self._tell(messages, held)
        except Unavailable:
            self._chains.clear()  # nobody knows what has arrived: the next link of each follows none
            await self._broadcast.brought(entries)

    async def changed(self, change: Changed) -> None:
        """See Outward."""
        try:
            held = await self._gateways.holders([(change.app, change.user_id)])
            body = _CHANGED + encode(change)
            await self._tell([(gateway, body) for gateways in held.values() for gateway in gateways], held)
        except Unavailable:
            await self._broadcast.changed(change)

    async def repeat(self) -> None:
        """See Outward."""
        ends = [(gateway, chain.end()) for gateway, chain in self._chains.items()]
        with contextlib.suppress(Unavailable):  # it is repeated the next time
            await self._tell([(gateway, _BROUGHT + encode(end)) for gateway, end in ends if end is not None], {})
        await self._broadcast.repeat()

    async def _tell(
        self, messages: Sequence[tuple[GatewayId, bytes]], held: Mapping[User, Sequence[GatewayId]]
    ) -> None:
        """Tell gateways; those that are dead hold nobody of *held* any more."""
        alive = await self._gateways.tell(messages) if messages else []
        dead = {gateway for (gateway, _), is_alive in zip(messages, alive, strict=True) if not is_alive}
        for gateway in dead:
            self._chains.pop(gateway, None)
        gone = [(user, gateway) for user, gateways in held.items() for gateway in gateways if gateway in dead]
        if gone:
            await self._gateways.forget(gone)


_brought = msgspec.msgpack.Decoder(Brought).decode
_changed = msgspec.msgpack.Decoder(Changed).decode
