"""A gateway that holds all requests until it has so many, and then answers them together."""

from __future__ import annotations

from waypost.bench.gateway import ReceivedCount, WaypostConnection


class Held:
    """The requests that a gateway has and answers together, once they are all there."""

    def __init__(self, wanted: int) -> None:
        self.wanted = wanted
        self.requests: list[tuple[HoldingConnection, int, bytes, bytes]] = []
        self.received = ReceivedCount()

    def answer(self) -> None:
        """Answer all."""
        for connection, stream, path, body in self.requests:
            connection.answer_now(stream, path, body)


class HoldingConnection(WaypostConnection):
    """A connection that answers its first request, by which Waypost sees that it is of use, and holds the others."""

    def __init__(self, held: Held) -> None:
        super().__init__(held.received)
        self._held = held
        self._is_new = True

    def _answer(self, stream: int, path: bytes, body: bytes, out: list[bytes]) -> None:
        if self._is_new:
            self._is_new = False
            super()._answer(stream, path, body, out)
            return
        self._held.requests.append((self, stream, path, body))
        if len(self._held.requests) == self._held.wanted:
            self._held.answer()

    def answer_now(self, stream: int, path: bytes, body: bytes) -> None:
        """Answer a request that was held."""
        out: list[bytes] = []
        super()._answer(stream, path, body, out)
        self._transport.write(b"".join(out))
