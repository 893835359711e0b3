"""The way from one hub to those of other processes, each of which is told everything."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Protocol

import msgspec

from waypost.entrypoints.live.chain import Brought, Chain, encode
from waypost.entrypoints.live.connection import Reader
from waypost.ports.feed import NewEntry
from waypost.ports.live import Changed
from waypost.ports.peers import Peers

_BROUGHT: Final = "feed.brought"
_CHANGED: Final = "feed.changed"


class Listener(Protocol):
    """Hears what other processes tell."""

    def hear(self, link: Brought) -> None:
        """Hear of entries."""
        ...

    def show(self, change: Changed) -> None:
        """Hear of a change."""
        ...

    def read_for_all(self) -> None:
        """Read for everybody: something may have been missed."""
        ...


class Outward(Protocol):
    """Tells the hubs of other processes, and hears from them; what is lost is noticed by the chain of entries."""

    async def start(self, listener: Listener) -> None:
        """Begin to listen."""
        ...

    async def stop(self) -> None:
        """Hold nobody, and hear nothing, any more."""
        ...

    async def arrived(self, readers: Sequence[Reader]) -> None:
        """Hold *readers* here from now on: what is brought from the end of this on is told to this process."""
        ...

    def departed(self, reader: Reader) -> None:
        """Hold a reader no longer."""
        ...

    async def brought(self, entries: Sequence[NewEntry]) -> None:
        """Tell of entries."""
        ...

    async def changed(self, change: Changed) -> None:
        """Tell of a change."""
        ...

    async def repeat(self) -> None:
        """Repeat where the chain ends."""
        ...


class Broadcast:
    """Tells every other process, whoever it holds (fulfils Outward)."""

    def __init__(self, peers: Peers) -> None:
        self._peers = peers
        self._chain = Chain()

    async def start(self, listener: Listener) -> None:
        """See Outward."""
        self._peers.on(_BROUGHT, lambda body: listener.hear(_brought(body)))
        self._peers.on(_CHANGED, lambda body: listener.show(_changed(body)))

    async def stop(self) -> None:
        """See Outward: what is heard after it changes nothing."""

    async def arrived(self, readers: Sequence[Reader]) -> None:
        """See Outward: everybody is told everything."""

    def departed(self, reader: Reader) -> None:
        """See Outward."""

    async def brought(self, entries: Sequence[NewEntry]) -> None:
        """See Outward."""
        for link in self._chain.links(entries):
            self._peers.tell(_BROUGHT, encode(link))

    async def changed(self, change: Changed) -> None:
        """See Outward."""
        self._peers.tell(_CHANGED, encode(change))

    async def repeat(self) -> None:
        """See Outward."""
        end = self._chain.end()
        if end is not None:
            self._peers.tell(_BROUGHT, encode(end))


_brought: Callable[[bytes], Brought] = msgspec.msgpack.Decoder(Brought).decode
_changed: Callable[[bytes], Changed] = msgspec.msgpack.Decoder(Changed).decode
