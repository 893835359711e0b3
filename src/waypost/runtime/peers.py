"""Messages between the workers of one supervisor, over datagram socket pairs that they inherit.

Every worker slot has one pair; the supervisor keeps both ends, so that a worker that is started again gets the same
ones. A datagram is msgpack: ``[kind, topic, number, from_slot, body]``.
"""

from __future__ import annotations

import asyncio
import itertools
import socket
from collections.abc import Mapping

import msgspec

from waypost.ports.peers import Answerer

_TELL, _ASK, _ANSWER = 0, 1, 2
_DATAGRAM_LIMIT = 200_000

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(tuple[int, str, int, int, bytes]).decode


class NoPeers:
    """The peers of a worker that is alone: nobody to tell, nobody to ask."""

    def on(self, topic: str, answer: Answerer) -> None:
        """Ignore the handler: no question ever comes."""

    def tell(self, topic: str, body: bytes = b"") -> None:
        """Do nothing: nobody hears it."""

    async def ask(self, topic: str, body: bytes, timeout_s: float) -> list[bytes]:
        """Return no answers: there is nobody to ask."""
        return []


class SocketPeers:
    """The other workers, by slot."""

    def __init__(self, slot: int, inbox: socket.socket, outboxes: Mapping[int, socket.socket]) -> None:
        self._slot = slot
        self._inbox = inbox
        self._outboxes = outboxes
        self._answerers: dict[str, list[Answerer]] = {}
        self._numbers = itertools.count(1)
        self._waiting: dict[int, asyncio.Queue[bytes]] = {}

    def start(self) -> None:
        """Start listening on the running loop; drop what came for a predecessor of this slot."""
        self._inbox.setblocking(False)
        while self._receive() is not None:
            pass
        asyncio.get_running_loop().add_reader(self._inbox, self._read)

    def stop(self) -> None:
        """Stop listening."""
        asyncio.get_running_loop().remove_reader(self._inbox)

    def on(self, topic: str, answer: Answerer) -> None:
        """Call *answer* with every message of *topic*."""
        self._answerers.setdefault(topic, []).append(answer)

    def tell(self, topic: str, body: bytes = b"") -> None:
        """Send to every other worker; a full inbox belongs to one that is frozen or about to be woken anyway."""
        for outbox in self._outboxes.values():
            send_to(outbox, topic, body, from_slot=self._slot)

    async def ask(self, topic: str, body: bytes, timeout_s: float) -> list[bytes]:
        """Ask every other worker; return the answers that came in time."""
        number = next(self._numbers)
        answers: asyncio.Queue[bytes] = asyncio.Queue()
        self._waiting[number] = answers
        asked = sum(_send(outbox, (_ASK, topic, number, self._slot, body)) for outbox in self._outboxes.values())
        found: list[bytes] = []
        try:
            async with asyncio.timeout(timeout_s):
                while len(found) < asked:
                    found.append(await answers.get())
        except TimeoutError:
            pass
        finally:
            del self._waiting[number]
        return [answer for answer in found if answer]

    def _read(self) -> None:
        while (datagram := self._receive()) is not None:
            kind, topic, number, from_slot, body = _decode(datagram)
            if kind == _ANSWER:
                if number in self._waiting:
                    self._waiting[number].put_nowait(body)
                continue
            said = [answer(body) for answer in self._answerers.get(topic, ())]
            if kind == _ASK and from_slot in self._outboxes:
                answer = next((each for each in said if each), b"")
                _send(self._outboxes[from_slot], (_ANSWER, topic, number, self._slot, answer))

    def _receive(self) -> bytes | None:
        try:
            return self._inbox.recv(_DATAGRAM_LIMIT)
        except BlockingIOError:
            return None


def send_to(outbox: socket.socket, topic: str, body: bytes = b"", from_slot: int = -1) -> None:
    """Tell one worker (the supervisor does, too)."""
    _send(outbox, (_TELL, topic, 0, from_slot, body))


def _send(outbox: socket.socket, message: tuple[int, str, int, int, bytes]) -> bool:
    try:
        outbox.send(_encode(message), socket.MSG_DONTWAIT)
    except OSError:
        return False
    return True
