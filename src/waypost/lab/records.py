"""The record of what arrived: a bounded memory of every judged request, and the count of accepted copies."""

import asyncio
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import msgspec

from waypost.lab.counterparts import gateway_names
from waypost.lab.exchange import ClientConnection, Request, Verdict

_MAX_CONNECTIONS = 10_000


class RequestRecord(msgspec.Struct, frozen=True, gc=False):
    """A judged request, without its bytes."""

    seq: int
    at: float
    gateway: str
    connection: int
    token: str
    notification_id: str
    push_type: str
    status: int
    reason: str
    accepted: bool


class RequestBody(msgspec.Struct, frozen=True, gc=False):
    """The bytes of one of the latest requests."""

    seq: int
    path: str
    headers: dict[str, str]
    body: bytes
    plaintext: bytes | None


class GatewayCounts(msgspec.Struct):
    """Totals of one gateway since the last reset."""

    accepted: int = 0
    refused: int = 0
    duplicates: int = 0
    connections_opened: int = 0
    reasons: Counter[str] = msgspec.field(default_factory=Counter)
    push_types: Counter[str] = msgspec.field(default_factory=Counter)
    violations: Counter[str] = msgspec.field(default_factory=Counter)


class Records:
    """The last `max_records` requests in compact form and the bytes of the last `max_bodies`."""

    def __init__(self, *, max_records: int, max_bodies: int, journal: Path | None) -> None:
        self._max_records, self._max_bodies = max_records, max_bodies
        self._journal: BinaryIO | None = journal.open("ab") if journal else None
        self._connection_numbers = 0
        self.connections: dict[int, ClientConnection] = {}
        self.arrived: asyncio.Event | None = None
        """The event that every request sets, for whoever waits for one."""
        self.reset()

    def reset(self) -> None:
        """Forget everything that arrived; open connections stay known."""
        self._ring: list[RequestRecord] = []
        self._contents: list[RequestBody] = []
        self._names: dict[str, str] = {}
        self.seq = 0
        self.evicted = 0
        self.copies: dict[str, dict[str, int]] = {}
        self.counts = {name: GatewayCounts() for name in gateway_names()}
        self.connections = {number: c for number, c in self.connections.items() if c.closed_at is None}

    def open_connection(
        self, gateway: str, protocol: str, now: float, *, scheme: str = "https", certificate: bytes | None = None
    ) -> ClientConnection:
        """Give a new connection its number."""
        self._connection_numbers += 1
        connection = ClientConnection(
            number=self._connection_numbers, gateway=gateway, protocol=protocol, opened_at=now, scheme=scheme,
            certificate=certificate,
        )  # fmt: skip
        self.connections[connection.number] = connection
        if len(self.connections) > _MAX_CONNECTIONS:
            closed = next((n for n, c in self.connections.items() if c.closed_at is not None), None)
            if closed is not None:
                del self.connections[closed]
        self.counts[gateway].connections_opened += 1
        return connection

    def violation(self, connection: ClientConnection, name: str) -> None:
        """Count a breach of protocol that is not a request of its own."""
        connection.violations[name] += 1
        self.counts[connection.gateway].violations[name] += 1

    def add(self, request: Request, verdict: Verdict, answer_status: int, now: float) -> None:
        """Remember one request, its judgement and the status it was answered with (0: none)."""
        connection, counts = request.connection, self.counts[request.connection.gateway]
        token = self._names.setdefault(verdict.token, verdict.token)
        notification_id = self._names.setdefault(verdict.notification_id, verdict.notification_id)
        if verdict.accepted:
            counts.accepted += 1
            counts.push_types[verdict.push_type] += 1
            connection.push_types[verdict.push_type] += 1
            if notification_id:
                tokens = self.copies.setdefault(notification_id, {})
                tokens[token] = copies = tokens.get(token, 0) + 1
                counts.duplicates += copies > 1
        else:
            counts.refused += 1
            counts.reasons[verdict.reason] += 1
        record = RequestRecord(
            self.seq, now, connection.gateway, connection.number, token, notification_id, verdict.push_type,
            answer_status, verdict.reason, verdict.accepted,
        )  # fmt: skip
        content = RequestBody(self.seq, request.path, request.headers, request.body, verdict.plaintext)
        self.seq += 1
        self._store(record, content)
        if self.arrived is not None:
            self.arrived.set()
        if self._journal and verdict.accepted:
            self._journal.write(msgspec.json.encode(record) + b"\n")

    def _store(self, record: RequestRecord, content: RequestBody) -> None:
        if len(self._contents) < self._max_bodies:
            self._contents.append(content)
        elif self._max_bodies:
            self._contents[record.seq % self._max_bodies] = content
        if len(self._ring) < self._max_records:
            self._ring.append(record)
            return
        oldest = self._ring[record.seq % self._max_records]
        self._ring[record.seq % self._max_records] = record
        self.evicted += 1
        self._forget(oldest)

    def _forget(self, record: RequestRecord) -> None:
        """Take an evicted record out of the copy counts, so that these stay bounded too."""
        if not record.accepted or not record.notification_id:
            return
        tokens = self.copies[record.notification_id]
        tokens[record.token] -= 1
        if not tokens[record.token]:
            del tokens[record.token]
        if not tokens:
            del self.copies[record.notification_id]
        if len(self._names) > 2 * self._max_records:
            self._names = {}

    def since(self, after: int) -> Iterator[RequestRecord]:
        """Yield what is still remembered with a sequence number above *after*, in order of arrival."""
        for seq in range(max(after + 1, self.seq - len(self._ring)), self.seq):
            yield self._ring[seq % self._max_records]

    def content(self, seq: int) -> RequestBody | None:
        """Return the bytes of request *seq*, when they are still kept."""
        if not self._contents:
            return None
        content = self._contents[seq % self._max_bodies]
        return content if content.seq == seq else None

    def flush(self) -> None:
        """Bring the journal file up to date."""
        if self._journal:
            self._journal.flush()

    def close(self) -> None:
        """Finish the journal file."""
        if self._journal:
            self._journal.close()
            self._journal = None


def notification_id_in(plaintext: bytes | None) -> str:
    """Read the id that a decrypted message carries; empty where it has none."""
    try:
        value = msgspec.json.decode(plaintext or b"null")
    except msgspec.DecodeError:
        return ""
    found = value.get("waypost_id") if isinstance(value, dict) else None
    return found if isinstance(found, str) else ""
