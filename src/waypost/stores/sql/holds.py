"""Held and done keys, in the tables of claimed ones: while a key is held its kind is ``held:`` and until when."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from msgspec import Struct

from waypost.domain.dedup import Claim, ClaimKind
from waypost.domain.ids import NotificationId
from waypost.domain.time import Instant, later
from waypost.ports.holds import HOLD_MS, Held
from waypost.ports.work import Conflicting, Duplicate, InProgress, NewNotification
from waypost.stores.sql.database import Database
from waypost.stores.sql.dedup import replace
from waypost.stores.sql.rows import select_in
from waypost.stores.sql.transaction import OperationKind, Transaction

_HELD = "held:"
_PARTITIONS = "SELECT slice FROM dedup_slice WHERE until > ? ORDER BY slice"
_FIND = "SELECT key, kind, id, body_hash, until FROM dedup_{partition} WHERE key IN ({{keys}})"


class _Key(Struct, frozen=True):
    """The state of a key."""

    id: NotificationId
    body_hash: bytes
    held_until: Instant | None
    """The end of the hold; None: it is done."""


class SqlHolds:
    """See Holds."""

    def __init__(self, database: Database) -> None:
        self._database = database
        partition_h = database.settings.dedup_partition_h

        def hold(transaction: Transaction, ops: Sequence[Sequence[NewNotification]]) -> list[list[Held]]:
            return [_hold(transaction, op, partition_h) for op in ops]

        def confirm(transaction: Transaction, ops: Sequence[Sequence[tuple[Claim, NotificationId]]]) -> list[None]:
            replace(transaction, [each for op in ops for each in op], partition_h)
            return [None] * len(ops)

        self._hold = OperationKind("hold", hold, durable=True, ordered=True, overtakes=True)
        self._confirm = OperationKind("confirm", confirm, durable=False, ordered=True, overtakes=True)

    async def hold(self, arrivals: Sequence[NewNotification]) -> list[Held]:
        """See Holds."""
        return await asyncio.shield(self._database.commits.submit(self._hold, arrivals, len(arrivals)))

    async def confirm(self, claims: Sequence[tuple[Claim, NotificationId]]) -> None:
        """See Holds."""
        await asyncio.shield(self._database.commits.submit(self._confirm, claims, len(claims)))


def _hold(transaction: Transaction, arrivals: Sequence[NewNotification], partition_h: int) -> list[Held]:
    now = transaction.now
    known = _known(transaction, [each.key for arrival in arrivals for each in arrival.claims])
    here: set[NotificationId] = set()
    """The notifications held by this very call: they become durable together, or not at all."""
    until = later(now, HOLD_MS)
    holding: list[tuple[Claim, NotificationId]] = []
    done: list[tuple[Claim, NotificationId]] = []
    answers: list[Held] = []
    for arrival in arrivals:
        answer = _answer(arrival, known, here, now)
        answers.append(answer)
        if isinstance(answer, bytes):
            held_id = NotificationId(answer)
            here.add(held_id)
            for each in arrival.claims:
                if each.until > now:
                    known[each.key] = _Key(held_id, each.body_hash, until)
                    holding.append((each, held_id))
        elif isinstance(answer, Duplicate) and answer.first_id not in here:
            for each in arrival.claims:
                if each.kind is ClaimKind.IDEMPOTENCY and each.until > now and not _is_done(known.get(each.key)):
                    known[each.key] = _Key(answer.first_id, each.body_hash, None)
                    done.append((each, answer.first_id))
    replace(transaction, holding, partition_h, held=f"{_HELD}{until}")
    replace(transaction, done, partition_h)
    return answers


def _answer(arrival: NewNotification, known: dict[bytes, _Key], here: set[NotificationId], now: Instant) -> Held:
    own = arrival.notification.id
    for each in sorted(arrival.claims, key=lambda one: one.kind is ClaimKind.CONTENT):
        key = known.get(each.key)
        if key is None:
            continue
        if each.kind is ClaimKind.IDEMPOTENCY and each.body_hash != key.body_hash:
            return Conflicting(key.id)
        if key.held_until is None or key.id in here:
            return Duplicate(key.id)
        if key.held_until > now:
            return InProgress(key.held_until - now)
        own = key.id
    return own


def _is_done(key: _Key | None) -> bool:
    return key is not None and key.held_until is None


def _known(transaction: Transaction, keys: Sequence[bytes]) -> dict[bytes, _Key]:
    found: dict[bytes, _Key] = {}
    connection = transaction.connection
    for (number,) in connection.execute(_PARTITIONS, (transaction.now,)).fetchall() if keys else ():
        for key, kind, first_id, body_hash, until in select_in(connection, _FIND.format(partition=number), keys):
            if until > transaction.now:
                held = Instant(int(kind.removeprefix(_HELD))) if kind.startswith(_HELD) else None
                found[key] = _Key(first_id, body_hash, held)
    return found
