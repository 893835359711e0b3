"""Peers within one process: workers of one test talk as workers of one machine do."""

from __future__ import annotations

import asyncio

from waypost.ports.peers import Answerer


class Party:
    """Everybody who joined."""

    def __init__(self) -> None:
        self.members: list[Member] = []

    def join(self) -> Member:
        """One more worker."""
        member = Member(self)
        self.members.append(member)
        return member


class Member:
    """One worker's Peers."""

    def __init__(self, party: Party) -> None:
        self._party = party
        self._answers: dict[str, Answerer] = {}

    def on(self, topic: str, answer: Answerer) -> None:
        """See Peers."""
        self._answers[topic] = answer

    def tell(self, topic: str, body: bytes = b"") -> None:
        """See Peers; every message arrives, and at once."""
        self._hear(topic, body)

    async def ask(self, topic: str, body: bytes, timeout_s: float) -> list[bytes]:
        """See Peers; nobody here is late, though every answer is a turn of the loop away."""
        await asyncio.sleep(0)
        return [answer for answer in self._hear(topic, body) if answer is not None]

    def _hear(self, topic: str, body: bytes) -> list[bytes | None]:
        others = (member for member in self._party.members if member is not self)
        return [member._answers[topic](body) for member in others if topic in member._answers]
