"""Copies of feeds: a partition for each user, which is as new as the stamp in it says.

The stamp moves by compare-and-set, in one batch with what it tells of. What is too much for one batch is written under
a claim in the stamp's place, a negative number: nobody takes the copy for true meanwhile, and whoever claims it later
ends this.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import msgspec
from msgspec import Struct

from waypost.domain.ids import AppId, UserId
from waypost.domain.time import SECOND_MS, Instant
from waypost.ports.feed import Entry
from waypost.stores.cassandra.link import CassandraLink
from waypost.stores.cassandra.partition import Part
from waypost.stores.cassandra.session import Session, Statement

User = tuple[AppId, UserId]

BATCH_PARTS: Final = 20
BATCH_BYTES: Final = 40_000
"""Cassandra warns of batches of 5 KiB, and refuses those above 50 KiB where they have no condition."""

_FIRST: Final = "SELECT stamp, place, entry FROM {keyspace}.feed WHERE app = ? AND user_id = ? LIMIT ?"
_NEXT: Final = "SELECT stamp, place, entry FROM {keyspace}.feed WHERE app = ? AND user_id = ? AND place < ? LIMIT ?"
_STAMP: Final = "SELECT DISTINCT app, user_id, stamp FROM {keyspace}.feed WHERE app = ? AND user_id = ?"
_MOVE: Final = "UPDATE {keyspace}.feed SET stamp = ? WHERE app = ? AND user_id = ? IF stamp = ?"
_PUT: Final = "INSERT INTO {keyspace}.feed (app, user_id, place, entry) VALUES (?, ?, ?, ?) USING TTL ?"
_REMOVE: Final = "DELETE FROM {keyspace}.feed WHERE app = ? AND user_id = ? AND place = ?"
_CLEAR: Final = "DELETE FROM {keyspace}.feed WHERE app = ? AND user_id = ? AND place > ?"
_FORGET: Final = "DELETE stamp FROM {keyspace}.feed WHERE app = ? AND user_id = ? IF stamp = ?"
_BELOW_ALL: Final = -(2**63)

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Entry).decode


class FeedStatements(Struct, frozen=True):
    """The statements, prepared: each names the whole partition key, and reads and writes as the writes do.

    A quorum, so that who reads a stamp reads all that was written before it.
    """

    first: Statement
    next: Statement
    stamp: Statement
    move: Statement
    put: Statement
    remove: Statement
    clear: Statement
    forget: Statement


class Slice(Struct, frozen=True):
    """A part of a copy, newest first; *stamp* is None where there is no copy."""

    stamp: int | None
    entries: tuple[Entry, ...]


class FeedCopy:
    """The copies of all feeds; Unavailable where the cluster does not answer."""

    def __init__(self, link: CassandraLink, keyspace: str, kept_ms: int) -> None:
        """Create it: an entry is kept for so long after it came into the feed."""
        self._link = link
        self._keyspace = keyspace
        self._kept_ms = kept_ms
        self._prepared: tuple[Session, FeedStatements] | None = None

    async def read(self, user: User, before: int | None, n: int) -> Slice:
        """Read at most *n* entries below the place *before*: one request to one partition.

        A slice without entries may have no stamp.
        """
        session, statements = await self._made()
        if before is None:
            rows = await session.execute(statements.first, *user, n)
        else:
            rows = await session.execute(statements.next, *user, before, n)
        found = tuple(_decode(entry) for _, place, entry in rows if place is not None)
        return Slice(rows[0][0] if rows else None, found)

    async def stamp(self, user: User) -> int | None:
        """Read the stamp; None where there is no copy."""
        session, statements = await self._made()
        rows = await session.execute(statements.stamp, *user)
        return rows[0][2] if rows else None

    async def follow(
        self, user: User, before: int | None, after: int, entries: Sequence[Entry], deleted: Iterable[int], now: Instant
    ) -> bool:
        """Write what a step changed; False where the copy has not the stamp from before it."""
        session, statements = await self._made()
        parts = [*self._puts(statements, user, entries, now), *((statements.remove, (*user, each)) for each in deleted)]
        batches = list(_in_batches(parts))
        if len(batches) <= 1:
            return await session.batch((statements.move, (after, *user, before)), *parts)
        claim = _claim()
        if not await session.batch((statements.move, (claim, *user, before))):
            return False
        return await self._write(user, claim, batches) and await self.finish(user, claim, after)

    async def claim(self, user: User, before: int | None) -> int | None:
        """Begin the copy anew, empty; None where it has not the stamp (or claim) *before* any more."""
        session, statements = await self._made()
        claim = _claim()
        move, clear = (statements.move, (claim, *user, before)), (statements.clear, (*user, _BELOW_ALL))
        return claim if await session.batch(move, clear) else None

    async def fill(self, user: User, claim: int, entries: Sequence[Entry], now: Instant) -> bool:
        """Write entries under a claim; False where that is over."""
        _, statements = await self._made()
        return await self._write(user, claim, list(_in_batches(self._puts(statements, user, entries, now))))

    async def finish(self, user: User, claim: int, stamp: int) -> bool:
        """Let the copy be as new as *stamp*; False where the claim is over."""
        session, statements = await self._made()
        return await session.batch((statements.move, (stamp, *user, claim)))

    async def drop(self, user: User) -> bool:
        """Delete the whole copy, and end every claim on it; False where somebody wrote meanwhile."""
        session, statements = await self._made()
        forget, clear = (statements.forget, (*user, await self.stamp(user))), (statements.clear, (*user, _BELOW_ALL))
        return await session.batch(forget, clear)

    async def _write(self, user: User, claim: int, batches: Sequence[Sequence[Part]]) -> bool:
        session, statements = await self._made()
        for parts in batches:
            if not await session.batch((statements.move, (claim, *user, claim)), *parts):
                return False
        return True

    def _puts(
        self, statements: FeedStatements, user: User, entries: Sequence[Entry], now: Instant
    ) -> Iterator[tuple[Statement, Sequence[Any]]]:
        for each in entries:
            left_s = (each.shown_at + self._kept_ms - now) // SECOND_MS
            if left_s > 0:
                yield statements.put, (*user, each.place, _encode(each), left_s)

    async def _made(self) -> tuple[Session, FeedStatements]:
        session, _ = await self._link.made()
        if self._prepared is None or self._prepared[0] is not session:
            self._prepared = session, await _prepare(session, self._keyspace)
        return self._prepared


async def _prepare(session: Session, keyspace: str) -> FeedStatements:
    async def of(cql: str, *, repeatable: bool = False) -> Statement:
        return await session.prepare(cql.format(keyspace=keyspace), repeatable=repeatable)

    return FeedStatements(
        first=await of(_FIRST, repeatable=True),
        next=await of(_NEXT, repeatable=True),
        stamp=await of(_STAMP, repeatable=True),
        move=await of(_MOVE),
        put=await of(_PUT),
        remove=await of(_REMOVE),
        clear=await of(_CLEAR),
        forget=await of(_FORGET),
    )


def _in_batches(parts: Iterable[Part]) -> Iterator[list[Part]]:
    batch: list[Part] = []
    size = 0
    for part in parts:
        weight = sum(len(each) for each in part[1] if isinstance(each, bytes))
        if batch and (len(batch) == BATCH_PARTS or size + weight > BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(part)
        size += weight
    if batch:
        yield batch


def _claim() -> int:
    """Draw the number of a claim, which no stamp is."""
    return -1 - secrets.randbits(62)
