"""Accounts of people and their sessions, on SQL: few rows, read by key; of passwords and tokens the hashes alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from waypost.domain.time import Instant
from waypost.stores.sql.added import AddedTable
from waypost.stores.sql.database import Database
from waypost.stores.sql.driver import Connection
from waypost.stores.sql.transaction import OperationKind, Transaction

ACCOUNT: Final = AddedTable(
    "account",
    "CREATE TABLE IF NOT EXISTS account"
    " (name {text} NOT NULL, role {text} NOT NULL, password {text} NOT NULL, totp {text}, totp_step {number} NOT NULL,"
    " created_at {number} NOT NULL, PRIMARY KEY (name)){layout}",
)
SESSION: Final = AddedTable(
    "account_session",
    "CREATE TABLE IF NOT EXISTS account_session"
    " (token {blob} NOT NULL, name {text} NOT NULL, begun_at {number} NOT NULL, expires_at {number} NOT NULL,"
    " PRIMARY KEY (token)){layout}",
)
_COLUMNS: Final = "account.name, account.role, account.password, account.totp, account.created_at"
_PUT: Final = """\
INSERT INTO account (name, role, password, totp, totp_step, created_at) VALUES (?, ?, ?, ?, 0, ?)
ON CONFLICT (name) DO UPDATE
SET role = excluded.role, password = excluded.password, totp = excluded.totp, totp_step = 0
"""
_ENTER: Final = """\
INSERT INTO account (name, role, password, totp, totp_step, created_at) VALUES (?, ?, '', NULL, 0, ?)
ON CONFLICT (name) DO UPDATE SET role = excluded.role
"""
_FIND: Final = f"SELECT {_COLUMNS} FROM account WHERE name = ?"  # noqa: S608 - a list of columns
_ALL: Final = f"SELECT {_COLUMNS} FROM account ORDER BY name LIMIT ?"  # noqa: S608 - a list of columns
_OF_SESSION: Final = f"""\
SELECT {_COLUMNS} FROM account_session JOIN account ON account.name = account_session.name
WHERE account_session.token = ? AND account_session.expires_at > ?
"""  # noqa: S608 - a list of columns
_USE_STEP: Final = "UPDATE account SET totp_step = ? WHERE name = ? AND totp_step < ?"
_BEGIN: Final = "INSERT INTO account_session (token, name, begun_at, expires_at) VALUES (?, ?, ?, ?)"
_END: Final = "DELETE FROM account_session WHERE token = ?"
_END_ALL: Final = "DELETE FROM account_session WHERE name = ?"
_REMOVE: Final = "DELETE FROM account WHERE name = ?"
_DROP: Final = (
    "DELETE FROM account_session WHERE token IN (SELECT token FROM account_session WHERE expires_at <= ? LIMIT ?)"
)


class Account(Struct, frozen=True):
    """A person who may log in."""

    name: str
    role: str
    password: str
    """The hash of the password, with its parameters; empty where somebody else vouches for the person."""
    totp: str | None
    """The secret of the second factor (RFC 6238), in base32; None where there is none."""
    created_at: Instant


class NewSession(Struct, frozen=True):
    """A session that begins; *token* is the hash of what the browser has."""

    token: bytes
    name: str
    begun_at: Instant
    expires_at: Instant


class SqlAccounts:
    """The accounts of an installation, and who is logged in."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def put(self, account: Account) -> None:
        """Store an account, or another role, password and second factor of one that is there; its sessions end."""
        await self._database.commits.submit(_PUTTING, account)

    async def find(self, name: str) -> Account | None:
        """Return the account of this name."""
        row = await self._database.read(lambda connection: connection.execute(_FIND, (name,)).fetchone())
        return None if row is None else Account(*row)

    async def all(self, n: int) -> list[Account]:
        """List at most *n* accounts by name."""
        rows = await self._database.read(lambda connection: connection.execute(_ALL, (n,)).fetchall())
        return [Account(*row) for row in rows]

    async def remove(self, name: str) -> bool:
        """Delete an account and end its sessions; False if there is none."""
        return await self._database.commits.submit(_REMOVING, name)

    async def use_step(self, name: str, step: int) -> bool:
        """Note that the code of a step of time was used; False where it, or a later one, was before."""
        return await self._database.commits.submit(_USING_STEP, (name, step))

    async def begin(self, session: NewSession) -> None:
        """Begin a session."""
        await self._database.commits.submit(_BEGINNING, session)

    async def enter(self, role: str, session: NewSession) -> None:
        """Begin a session of somebody whom a provider vouches for, with the role that it says from now on."""
        await self._database.commits.submit(_ENTERING, (role, session))

    async def logged_in(self, token: bytes, now: Instant) -> Account | None:
        """Return whose session has this hash and has not ended."""
        row = await self._database.read(lambda connection: connection.execute(_OF_SESSION, (token, now)).fetchone())
        return None if row is None else Account(*row)

    async def end(self, token: bytes) -> None:
        """End a session."""
        await self._database.commits.submit(_ENDING, token)

    async def end_all(self, name: str) -> int:
        """End every session of an account; return how many it was."""
        return await self._database.commits.submit(_ENDING_ALL, name)

    async def drop(self, now: Instant, n: int) -> int:
        """Delete at most *n* sessions that have ended; return how many it was."""
        return await self._database.commits.submit(_DROPPING, (now, n))


def _put(transaction: Transaction, accounts: Sequence[Account]) -> list[None]:
    for each in accounts:
        transaction.connection.execute(_END_ALL, (each.name,))
        row = (each.name, each.role, each.password, each.totp, each.created_at)
        transaction.connection.execute(_PUT, row)
    return [None] * len(accounts)


def _remove(transaction: Transaction, names: Sequence[str]) -> list[bool]:
    return [_remove_one(transaction.connection, name) for name in names]


def _remove_one(connection: Connection, name: str) -> bool:
    connection.execute(_END_ALL, (name,))
    return connection.execute(_REMOVE, (name,)).rowcount > 0


def _use_step(transaction: Transaction, uses: Sequence[tuple[str, int]]) -> list[bool]:
    execute = transaction.connection.execute
    return [execute(_USE_STEP, (step, name, step)).rowcount > 0 for name, step in uses]


def _begin(transaction: Transaction, sessions: Sequence[NewSession]) -> list[None]:
    rows = [(each.token, each.name, each.begun_at, each.expires_at) for each in sessions]
    transaction.connection.executemany(_BEGIN, rows)
    return [None] * len(sessions)


def _enter(transaction: Transaction, entries: Sequence[tuple[str, NewSession]]) -> list[None]:
    for role, session in entries:
        transaction.connection.execute(_ENTER, (session.name, role, session.begun_at))
    return _begin(transaction, [session for _, session in entries])


def _end(transaction: Transaction, tokens: Sequence[bytes]) -> list[None]:
    transaction.connection.executemany(_END, [(token,) for token in tokens])
    return [None] * len(tokens)


def _end_all(transaction: Transaction, names: Sequence[str]) -> list[int]:
    return [transaction.connection.execute(_END_ALL, (name,)).rowcount for name in names]


def _drop(transaction: Transaction, pages: Sequence[tuple[Instant, int]]) -> list[int]:
    return [transaction.connection.execute(_DROP, page).rowcount for page in pages]


_PUTTING = OperationKind("put_account", _put, durable=True)
_REMOVING = OperationKind("remove_account", _remove, durable=True)
_USING_STEP = OperationKind("use_second_factor", _use_step, durable=True)
_BEGINNING = OperationKind("begin_session", _begin, durable=True)
_ENTERING = OperationKind("enter_by_provider", _enter, durable=True)
_ENDING = OperationKind("end_session", _end, durable=True)
_ENDING_ALL = OperationKind("end_sessions", _end_all, durable=True)
_DROPPING = OperationKind("drop_sessions", _drop, durable=False, patient=True)
