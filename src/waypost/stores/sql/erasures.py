"""Forgetting a user on SQL, page by page.

erasure        one row an order; without the user once it is carried out, but for a trace (erased)
notification   by (slice, app, user, id), up to the order's time     content  by seq     receipt  by notification id
tables of features whose rows belong to notifications          by notification id
bulk_recipient, bulk_piece, bulk_job   of the app's jobs, which are few
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from msgspec import Struct

from waypost.domain.content import Content
from waypost.domain.ids import AppId, NotificationId, UserId, first_id_at
from waypost.domain.time import Instant, later
from waypost.ports.erasure import ERASED_DEVICE, Erasure
from waypost.stores.sql.database import Database
from waypost.stores.sql.driver import Connection
from waypost.stores.sql.erased import ErasedUsers, erased_since, leave_trace
from waypost.stores.sql.history import OLDEST_FIRST, SLICES
from waypost.stores.sql.retention import delete_notifications
from waypost.stores.sql.rows import content_body, execute_in
from waypost.stores.sql.transaction import OperationKind, Transaction

_COLUMNS = "id, app, user_id, tombstone, asked_at"
_STANDING = f"SELECT {_COLUMNS} FROM erasure WHERE finished_at IS NULL"  # noqa: S608 - a list of columns
_ASK = f"INSERT INTO erasure ({_COLUMNS}) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"  # noqa: S608 - the same
_FINISH = "UPDATE erasure SET user_id = NULL, finished_at = ? WHERE id = ?"
_OF_USER = f"FROM {SLICES} WHERE app = ?1 AND user_id = ?2 AND id < ?3"
_UNFINISHED = f"SELECT id {_OF_USER} AND finished_at IS NULL {OLDEST_FIRST} LIMIT ?4"
_FINAL = f"SELECT seq, id, job, caller {_OF_USER} AND finished_at IS NOT NULL {OLDEST_FIRST} LIMIT ?4"
_ALL_OF = f"SELECT seq, id, app, lane, status {_OF_USER} AND finished_at IS NOT NULL {OLDEST_FIRST} LIMIT ?4"
_ANONYMISE = "UPDATE notification SET user_id = ?, caller = ?, device_ids = NULL, variables = NULL WHERE id = ?"
_SAY_NOTHING = "UPDATE content SET body = ? WHERE seq = ?"
_BLANK_RECEIPTS = (
    "UPDATE receipt SET device_id = ?, provider_id = NULL, reason = NULL, attempts = NULL, dead = 0"
    " WHERE notification_id = ?"
)
_NO_CONTENT: Final = content_body(Content())

_JOBS = "SELECT number FROM bulk_job WHERE app = ?"
_BOUNDS = "SELECT n FROM bulk_piece WHERE job = ? AND (after_user = ? OR until_user = ?)"
_LISTED = "SELECT 1 FROM bulk_recipient WHERE job = ? AND user_id = ?"
_WALKED_TO = "SELECT 1 FROM bulk_job WHERE number = ? AND walked_to = ?"
_BELOW_IN_LIST = "SELECT user_id FROM bulk_recipient WHERE job = ? AND user_id < ? ORDER BY user_id DESC LIMIT 1"
_BELOW_IN_REGISTRY = "SELECT user_id FROM device WHERE app = ? AND user_id < ? ORDER BY user_id DESC LIMIT 1"
_STRIKE = "DELETE FROM bulk_recipient WHERE job = ? AND user_id = ?"
_MOVE_AFTER = "UPDATE bulk_piece SET after_user = ? WHERE job = ? AND n = ? AND after_user = ?"
_MOVE_UNTIL = "UPDATE bulk_piece SET until_user = ? WHERE job = ? AND n = ? AND until_user = ?"
_MOVE_WALK = "UPDATE bulk_job SET walked_to = ? WHERE number = ? AND walked_to = ?"


class _Page(Struct, frozen=True):
    """A page of what to blank, at most."""

    erasure: Erasure
    n: int
    beside: tuple[str, ...]
    """The tables of features whose rows of these notifications go."""


class _Mentions(Struct, frozen=True):
    """The places where a bulk job names the user."""

    erasure: Erasure
    job: int
    pieces: tuple[int, ...]
    """The pieces whose bound the user is."""


class SqlErasures:
    """The erasures of the store: see Erasures."""

    def __init__(self, database: Database, beside: Sequence[str] = ()) -> None:
        """Create it; *beside* are tables of features whose rows belong to notifications."""
        self._database = database
        self._beside = tuple(beside)

    async def ask(self, erasure: Erasure) -> Erasure:
        """See Erasures."""
        return await self._database.commits.submit(_ASKING, erasure)

    async def of(self, app: AppId, user: UserId) -> Erasure | None:
        """See Erasures."""
        return await self._database.read(lambda connection: _standing_of(connection, app, user))

    async def standing(self, n: int, after: NotificationId | None = None) -> Sequence[Erasure]:
        """See Erasures."""
        sql = f"{_STANDING} AND id > ? ORDER BY id LIMIT ?"
        rows = await self._database.read(lambda connection: connection.execute(sql, (after or b"", n)).fetchall())
        return [Erasure(*row) for row in rows]

    async def unfinished(self, erasure: Erasure, n: int) -> Sequence[NotificationId]:
        """See Erasures."""
        bound = (*_whose(erasure), n)
        rows = await self._database.read(lambda connection: connection.execute(_UNFINISHED, bound).fetchall())
        return [row[0] for row in rows]

    async def blank(self, erasure: Erasure, n: int) -> int:
        """See Erasures."""
        return await self._database.commits.submit(_BLANKING, _Page(erasure, n, self._beside), n)

    async def delete(self, erasure: Erasure, n: int) -> int:
        """See Erasures."""
        return await self._database.commits.submit(_DELETING, _Page(erasure, n, self._beside), n)

    async def strike(self, erasure: Erasure) -> None:
        """See Erasures; a job's bounds move to the user before, who leaves nobody else out."""
        for mentions in await self._database.read(lambda connection: _mentions(connection, erasure)):
            await self._database.commits.submit(_STRIKING, mentions)

    async def finish(self, erasure: Erasure, at: Instant) -> None:
        """See Erasures."""
        await self._database.commits.submit(_FINISHING, (at, erasure))

    async def carried_out(self, app: AppId, since: Instant) -> ErasedUsers:
        """Read whose erasure ended at *since* or later."""
        return await self._database.read(lambda connection: erased_since(connection, app, since))


def _whose(erasure: Erasure) -> tuple[Any, ...]:
    return erasure.app, erasure.user_id, first_id_at(later(erasure.asked_at, 1))


def _ask(transaction: Transaction, orders: Sequence[Erasure]) -> list[Erasure]:
    return [_ask_one(transaction.connection, order) for order in orders]


def _ask_one(connection: Connection, order: Erasure) -> Erasure:
    connection.execute(_ASK, (order.id, order.app, order.user_id, order.tombstone, order.asked_at))
    standing = _standing_of(connection, order.app, order.user_id)
    assert standing is not None
    return standing


def _standing_of(connection: Connection, app: AppId, user: UserId) -> Erasure | None:
    row = connection.execute(f"{_STANDING} AND app = ? AND user_id = ?", (app, user)).fetchone()
    return None if row is None else Erasure(*row)


def _blank(transaction: Transaction, pages: Sequence[_Page]) -> list[int]:
    return [_blank_page(transaction.connection, page) for page in pages]


def _blank_page(connection: Connection, page: _Page) -> int:
    rows = connection.execute(_FINAL, (*_whose(page.erasure), page.n)).fetchall()
    ids = [row[1] for row in rows]
    connection.executemany(_SAY_NOTHING, [(_NO_CONTENT, row[0]) for row in rows if row[2] is None])
    connection.executemany(_BLANK_RECEIPTS, [(ERASED_DEVICE, one) for one in ids])
    for table in page.beside:
        execute_in(connection, f"DELETE FROM {table} WHERE notification_id IN ({{keys}})", ids)  # noqa: S608 - its name is the code's
    callers = [page.erasure.caller_after(row[3]) for row in rows]
    connection.executemany(
        _ANONYMISE, [(page.erasure.tombstone, caller, one) for caller, one in zip(callers, ids, strict=True)]
    )
    return len(rows)


def _delete(transaction: Transaction, pages: Sequence[_Page]) -> list[int]:
    execute = transaction.connection.execute
    found = [(page, execute(_ALL_OF, (*_whose(page.erasure), page.n)).fetchall()) for page in pages]
    return [delete_notifications(transaction, rows, page.beside) for page, rows in found]


def _mentions(connection: Connection, erasure: Erasure) -> list[_Mentions]:
    """Find the jobs of the app that name the user."""
    user = erasure.user_id
    found = []
    for (job,) in connection.execute(_JOBS, (erasure.app,)).fetchall():
        pieces = tuple(row[0] for row in connection.execute(_BOUNDS, (job, user, user)).fetchall())
        named = any(connection.execute(sql, (job, user)).fetchone() for sql in (_LISTED, _WALKED_TO))
        if pieces or named:
            found.append(_Mentions(erasure, job, pieces))
    return found


def _strike(transaction: Transaction, jobs: Sequence[_Mentions]) -> list[None]:
    for one in jobs:
        _strike_one(transaction.connection, one)
    return [None] * len(jobs)


def _strike_one(connection: Connection, one: _Mentions) -> None:
    user = one.erasure.user_id
    connection.execute(_STRIKE, (one.job, user))
    below = (
        connection.execute(_BELOW_IN_LIST, (one.job, user)).fetchone(),
        connection.execute(_BELOW_IN_REGISTRY, (one.erasure.app, user)).fetchone(),
    )
    bound = max((row[0] for row in below if row is not None), default="")
    for n in one.pieces:
        connection.execute(_MOVE_AFTER, (bound, one.job, n, user))
        connection.execute(_MOVE_UNTIL, (bound, one.job, n, user))
    connection.execute(_MOVE_WALK, (bound, one.job, user))


def _finish(transaction: Transaction, orders: Sequence[tuple[Instant, Erasure]]) -> list[None]:
    for at, erasure in orders:
        leave_trace(transaction.connection, erasure)
        transaction.connection.execute(_FINISH, (at, erasure.id))
    return [None] * len(orders)


_ASKING: OperationKind[Erasure, Erasure] = OperationKind("ask_erasure", _ask, durable=True)
_BLANKING: OperationKind[_Page, int] = OperationKind("blank_erased", _blank, durable=False)
_DELETING: OperationKind[_Page, int] = OperationKind("delete_erased", _delete, durable=False)
_STRIKING: OperationKind[_Mentions, None] = OperationKind("strike_erased", _strike, durable=False)
_FINISHING: OperationKind[tuple[Instant, Erasure], None] = OperationKind("finish_erasure", _finish, durable=True)
