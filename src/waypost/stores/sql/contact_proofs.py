"""Whose addresses are proved, and the codes on their way, on SQL: one row for each kind of contact of a user.

No address and no code is in them: hashes, and the numbers that codes are made from (``domain.contact_code``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from waypost.domain.contact_code import PendingCode, hour_of
from waypost.domain.device import Platform
from waypost.domain.ids import AppId, UserId
from waypost.domain.time import DAY_MS, Instant, later
from waypost.stores.sql.added import AddedTable
from waypost.stores.sql.database import Database
from waypost.stores.sql.driver import Connection
from waypost.stores.sql.transaction import OperationKind, Transaction

VERIFIED: Final = AddedTable(
    "contact_verified",
    "CREATE TABLE IF NOT EXISTS contact_verified"
    " (app {text} NOT NULL, user_id {text} NOT NULL, kind {text} NOT NULL, address {blob} NOT NULL,"
    " at {number} NOT NULL, PRIMARY KEY (app, user_id, kind)){layout}",
)
CODES: Final = AddedTable(
    "contact_code",
    "CREATE TABLE IF NOT EXISTS contact_code"
    " (app {text} NOT NULL, user_id {text} NOT NULL, kind {text} NOT NULL, address {blob} NOT NULL,"
    " nonce {blob} NOT NULL, expires_at {number} NOT NULL, tries {number} NOT NULL,"
    " PRIMARY KEY (app, user_id, kind)){layout}",
)
COUNTS: Final = AddedTable(
    "contact_code_count",
    "CREATE TABLE IF NOT EXISTS contact_code_count"
    " (hour {number} NOT NULL, app {text} NOT NULL, address {blob} NOT NULL, n {number} NOT NULL,"
    " PRIMARY KEY (hour, app, address)){layout}",
)
_COUNT: Final = """\
INSERT INTO contact_code_count (hour, app, address, n) VALUES (?, ?, ?, 1)
ON CONFLICT (hour, app, address) DO UPDATE SET n = contact_code_count.n + 1 WHERE contact_code_count.n < ?
"""
_ASK: Final = """\
INSERT INTO contact_code (app, user_id, kind, address, nonce, expires_at, tries) VALUES (?, ?, ?, ?, ?, ?, 0)
ON CONFLICT (app, user_id, kind) DO UPDATE
SET address = excluded.address, nonce = excluded.nonce, expires_at = excluded.expires_at, tries = 0
"""
_TRY: Final = """\
UPDATE contact_code SET tries = tries + 1
WHERE app = ? AND user_id = ? AND kind = ? AND address = ? AND expires_at > ? AND tries < ?
RETURNING nonce, expires_at
"""
_BY_NONCE: Final = """\
SELECT kind, address FROM contact_code WHERE app = ? AND user_id = ? AND nonce = ? AND expires_at > ?
"""
_USE_UP: Final = "DELETE FROM contact_code WHERE app = ? AND user_id = ? AND kind = ? AND nonce = ?"
_VERIFY: Final = """\
INSERT INTO contact_verified (app, user_id, kind, address, at) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (app, user_id, kind) DO UPDATE SET address = excluded.address, at = excluded.at
"""
_FORGET: Final = (
    "DELETE FROM contact_verified WHERE app = ? AND user_id = ? AND kind = ?",
    "DELETE FROM contact_code WHERE app = ? AND user_id = ? AND kind = ?",
)
_ERASE: Final = (
    "DELETE FROM contact_verified WHERE app = ? AND user_id = ? AND at <= ?",
    "DELETE FROM contact_code WHERE app = ? AND user_id = ?",
)
_OLD_CODES: Final = (
    "DELETE FROM contact_code WHERE (app, user_id, kind) IN"
    " (SELECT app, user_id, kind FROM contact_code WHERE expires_at < ? LIMIT ?)"
)
_OLD_COUNTS: Final = (
    "DELETE FROM contact_code_count WHERE (hour, app, address) IN"
    " (SELECT hour, app, address FROM contact_code_count WHERE hour < ? LIMIT ?)"
)


class Contact(Struct, frozen=True):
    """One kind of contact of a user, as it is registered now."""

    app: AppId
    user_id: UserId
    kind: Platform
    address: bytes
    """The hash of the address, with its user."""

    @property
    def key(self) -> tuple[AppId, UserId, Platform]:
        """The key of its rows."""
        return self.app, self.user_id, self.kind


class Asked(Struct, frozen=True):
    """A wish to send a code, of which *limit* an hour may go to what is *counted_as* one address."""

    contact: Contact
    nonce: bytes
    now: Instant
    expires_at: Instant
    counted_as: bytes
    limit: int


class ContactFacts(Struct, frozen=True):
    """The proofs and pending codes of a user."""

    verified: frozenset[bytes] = frozenset()
    pending: tuple[PendingCode, ...] = ()


class SqlContactProofs:
    """The store of whose addresses are proved."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def ask(self, asked: Asked) -> bool:
        """Put a new code in the place of the one before; False where too many went to the address in this hour."""
        return await self._database.commits.submit(_ASKING, asked)

    async def spend_try(self, contact: Contact, now: Instant, tries: int) -> PendingCode | None:
        """Count one more try at the code of this very address; None where there is none, or *tries* were made."""
        return await self._database.commits.submit(_TRYING, (contact, now, tries))

    async def linked(self, app: AppId, user_id: UserId, nonce: bytes, now: Instant) -> Contact | None:
        """Find the contact whose code a link speaks of; None where that has ended or was used."""
        row = await self._database.read(
            lambda connection: connection.execute(_BY_NONCE, (app, user_id, nonce, now)).fetchone()
        )
        return None if row is None else Contact(app, user_id, Platform(row[0]), row[1])

    async def verify(self, contact: Contact, nonce: bytes, now: Instant) -> bool:
        """Note that an address is proved by the code of *nonce*; False where that was used or replaced meanwhile."""
        return await self._database.commits.submit(_VERIFYING, (contact, nonce, now))

    async def forget(self, contact: Contact) -> None:
        """Forget what is known of this kind of contact of a user: it is another, or gone."""
        await self._database.commits.submit(_FORGETTING, contact)

    async def of(self, app: AppId, users: Sequence[UserId], now: Instant) -> dict[UserId, ContactFacts]:
        """Return what is known of the contacts of *users*, with the codes that have not ended."""
        return await self._database.read(lambda connection: _facts(connection, app, users, now))

    async def erase(self, app: AppId, user_id: UserId, until: Instant) -> None:
        """Forget a user as they were until then."""
        await self._database.commits.submit(_ERASING, (app, user_id, until))

    async def drop(self, now: Instant, page: int) -> int:
        """Delete a page of codes that have ended, and of counts of a day ago; return how many it was."""
        return await self._database.commits.submit(_DROPPING, (now, page))


def _ask(transaction: Transaction, batch: Sequence[Asked]) -> list[bool]:
    return [_ask_one(transaction.connection, each) for each in batch]


def _ask_one(connection: Connection, asked: Asked) -> bool:
    counted = (hour_of(asked.now), asked.contact.app, asked.counted_as, asked.limit)
    if connection.execute(_COUNT, counted).rowcount == 0:
        return False
    connection.execute(_ASK, (*asked.contact.key, asked.contact.address, asked.nonce, asked.expires_at))
    return True


def _try(transaction: Transaction, batch: Sequence[tuple[Contact, Instant, int]]) -> list[PendingCode | None]:
    return [_try_one(transaction.connection, *each) for each in batch]


def _try_one(connection: Connection, contact: Contact, now: Instant, tries: int) -> PendingCode | None:
    row = connection.execute(_TRY, (*contact.key, contact.address, now, tries)).fetchone()
    return None if row is None else PendingCode(contact.address, *row)


def _verify(transaction: Transaction, batch: Sequence[tuple[Contact, bytes, Instant]]) -> list[bool]:
    return [_verify_one(transaction.connection, *each) for each in batch]


def _verify_one(connection: Connection, contact: Contact, nonce: bytes, now: Instant) -> bool:
    if connection.execute(_USE_UP, (*contact.key, nonce)).rowcount == 0:
        return False
    connection.execute(_VERIFY, (*contact.key, contact.address, now))
    return True


def _forget(transaction: Transaction, contacts: Sequence[Contact]) -> list[None]:
    for statement in _FORGET:
        transaction.connection.executemany(statement, [contact.key for contact in contacts])
    return [None] * len(contacts)


def _erase(transaction: Transaction, orders: Sequence[tuple[AppId, UserId, Instant]]) -> list[None]:
    verified, codes = _ERASE
    transaction.connection.executemany(verified, orders)
    transaction.connection.executemany(codes, [(app, user_id) for app, user_id, _ in orders])
    return [None] * len(orders)


def _drop(transaction: Transaction, pages: Sequence[tuple[Instant, int]]) -> list[int]:
    execute = transaction.connection.execute
    return [
        execute(_OLD_CODES, (now, page)).rowcount + execute(_OLD_COUNTS, (hour_of(later(now, -DAY_MS)), page)).rowcount
        for now, page in pages
    ]


def _facts(connection: Connection, app: AppId, users: Sequence[UserId], now: Instant) -> dict[UserId, ContactFacts]:
    asked = f"app = ? AND user_id IN ({', '.join('?' * len(users))})"
    verified: dict[UserId, set[bytes]] = {}
    pending: dict[UserId, list[PendingCode]] = {}
    known = f"SELECT user_id, address FROM contact_verified WHERE {asked}"  # noqa: S608 - question marks
    for user, address in connection.execute(known, (app, *users)).fetchall():
        verified.setdefault(user, set()).add(address)
    coming = f"SELECT user_id, address, nonce, expires_at FROM contact_code WHERE {asked} AND expires_at > ?"  # noqa: S608 - as above
    for user, *code in connection.execute(coming, (app, *users, now)).fetchall():
        pending.setdefault(user, []).append(PendingCode(*code))
    return {
        user: ContactFacts(frozenset(verified.get(user, ())), tuple(pending.get(user, ())))
        for user in verified.keys() | pending.keys()
    }


_ASKING = OperationKind("ask_contact_code", _ask, durable=True)
_TRYING = OperationKind("try_contact_code", _try, durable=True)
_VERIFYING = OperationKind("verify_contact", _verify, durable=True)
_FORGETTING = OperationKind("forget_contact", _forget, durable=True)
_ERASING = OperationKind("erase_contacts", _erase, durable=True)
_DROPPING = OperationKind("drop_contact_codes", _drop, durable=False, patient=True)
