"""Traces of those who were erased: by them somebody who comes back with an old copy is known, and forgotten again.

erased_user   one row an erasure that was carried out: a hash that can only be guessed and compared

Its salt is the installation's, so that a copy with a million users is hashed once, however many were erased.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from hashlib import blake2b
from typing import Final

from msgspec import Struct

from waypost.domain.ids import AppId, NotificationId, UserId, created_at
from waypost.domain.time import Instant
from waypost.ports.erasure import Erasure
from waypost.stores.sql.added import AddedTable
from waypost.stores.sql.driver import Connection

ERASED: Final = AddedTable(
    "erased_user",
    "CREATE TABLE IF NOT EXISTS erased_user"
    " (id {blob} NOT NULL, salt {blob} NOT NULL, trace {blob} NOT NULL, PRIMARY KEY (id)){layout}",
)
_SALT: Final = "SELECT salt FROM erased_user LIMIT 1"
_ADD: Final = "INSERT INTO erased_user (id, salt, trace) VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
_SINCE: Final = """\
SELECT erasure.id, app, tombstone, asked_at, salt, trace FROM erasure JOIN erased_user ON erased_user.id = erasure.id
WHERE app = ? AND finished_at >= ? ORDER BY asked_at
"""
_BYTES: Final = 16


class Trace(Struct, frozen=True):
    """An erasure that was carried out, and what is left of whom it was about."""

    id: NotificationId
    app: AppId
    tombstone: UserId
    asked_at: Instant
    salt: bytes
    trace: bytes


class ErasedUsers:
    """Those of an app who were erased, as far as they can be known again."""

    def __init__(self, traces: Iterable[Trace]) -> None:
        """Create it of *traces*, the oldest first."""
        self._by_salt: dict[bytes, dict[bytes, list[Trace]]] = {}
        for each in traces:
            self._by_salt.setdefault(each.salt, {}).setdefault(each.trace, []).append(each)

    def orders_of(self, user: UserId) -> list[Erasure]:
        """List the orders to forget a user, the oldest first."""
        return [
            Erasure(each.id, each.app, user, each.tombstone, each.asked_at)
            for salt, traces in self._by_salt.items()
            for each in traces.get(trace_of(user, salt), ())
        ]

    def order_about(self, user: UserId, notification_id: NotificationId) -> Erasure | None:
        """Find the order that reached this notification of a user; what came after it is somebody new."""
        made_at = created_at(notification_id)
        return next((each for each in self.orders_of(user) if made_at <= each.asked_at), None)


def trace_of(user: UserId, salt: bytes) -> bytes:
    """Hash a user."""
    return blake2b(user.encode(), digest_size=_BYTES, key=salt).digest()


def leave_trace(connection: Connection, erasure: Erasure) -> None:
    """Keep the trace of an erasure that has been carried out."""
    row = connection.execute(_SALT).fetchone()
    salt = os.urandom(_BYTES) if row is None else bytes(row[0])
    connection.execute(_ADD, (erasure.id, salt, trace_of(erasure.user_id, salt)))


def erased_since(connection: Connection, app: AppId, since: Instant) -> ErasedUsers:
    """Read whose erasure ended at *since* or later."""
    return ErasedUsers(Trace(*row) for row in connection.execute(_SINCE, (app, since)).fetchall())
