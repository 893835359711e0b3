"""Campaigns on SQL: what was asked and how it stands, in one row each; its list beside it, until it is over.

campaign            one row each
campaign_open       those of which something is still to be done
campaign_recipient  the list of one, by user
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from waypost.domain.bulk import Recipient
from waypost.domain.campaign import Campaign, CampaignState
from waypost.domain.ids import AppId, CallerId, UserId
from waypost.domain.time import Instant
from waypost.stores.sql.added import AddedTable
from waypost.stores.sql.database import Database
from waypost.stores.sql.driver import Connection
from waypost.stores.sql.transaction import Op, OperationKind, Result, Transaction

CAMPAIGN: Final = AddedTable(
    "campaign",
    "CREATE TABLE IF NOT EXISTS campaign"
    " (app {text} NOT NULL, name {text} NOT NULL, revision {number} NOT NULL, listed {number} NOT NULL,"
    " finished_at {number}, body {blob} NOT NULL, PRIMARY KEY (app, name)){layout}",
)
OPEN: Final = AddedTable(
    "campaign_open",
    "CREATE TABLE IF NOT EXISTS campaign_open"
    " (app {text} NOT NULL, name {text} NOT NULL, PRIMARY KEY (app, name)){layout}",
)
LIST: Final = AddedTable(
    "campaign_recipient",
    "CREATE TABLE IF NOT EXISTS campaign_recipient"
    " (app {text} NOT NULL, name {text} NOT NULL, user_id {text} NOT NULL, variables {blob},"
    " PRIMARY KEY (app, name, user_id)){layout}",
)
_GET: Final = "SELECT body, listed FROM campaign WHERE app = ? AND name = ?"
_PAGE: Final = "SELECT body, listed FROM campaign WHERE app = ? AND name > ? ORDER BY name LIMIT ?"
_ALL_OPEN: Final = """\
SELECT body, listed FROM campaign_open JOIN campaign
ON campaign.app = campaign_open.app AND campaign.name = campaign_open.name
ORDER BY campaign.app, campaign.name
"""
_INSERT: Final = """\
INSERT INTO campaign (app, name, revision, listed, finished_at, body) VALUES (?, ?, ?, 0, ?, ?) ON CONFLICT DO NOTHING
"""
_UPDATE: Final = """\
UPDATE campaign SET revision = ?, finished_at = ?, body = ? WHERE app = ? AND name = ? AND revision = ?
"""
_IS_OPEN: Final = "INSERT INTO campaign_open (app, name) VALUES (?, ?) ON CONFLICT DO NOTHING"
_CLOSE: Final = "DELETE FROM campaign_open WHERE app = ? AND name = ?"
_LOCK: Final = "UPDATE campaign SET revision = revision WHERE app = ? AND name = ? RETURNING body, listed"
_NAMED: Final = "SELECT count(*) FROM campaign_recipient WHERE app = ? AND name = ? AND user_id IN ({texts})"
_ADD: Final = """\
INSERT INTO campaign_recipient (app, name, user_id, variables) VALUES (?, ?, ?, ?)
ON CONFLICT (app, name, user_id) DO UPDATE SET variables = excluded.variables
"""
_LISTED: Final = "UPDATE campaign SET listed = listed + ? WHERE app = ? AND name = ?"
_EMPTY: Final = "UPDATE campaign SET listed = 0 WHERE app = ? AND name = ?"
_RECIPIENTS: Final = """\
SELECT user_id, variables FROM campaign_recipient WHERE app = ? AND name = ? AND user_id > ? ORDER BY user_id LIMIT ?
"""
_LISTED_WITH_OPT_OUTS: Final = """\
SELECT user_id, variables, EXISTS
(SELECT 1 FROM opt_out WHERE opt_out.app = campaign_recipient.app AND opt_out.user_id = campaign_recipient.user_id)
FROM campaign_recipient WHERE app = ? AND name = ? AND user_id > ? ORDER BY user_id LIMIT ?
"""
_DROP_LIST: Final = """\
DELETE FROM campaign_recipient WHERE app = ?1 AND name = ?2 AND user_id IN
(SELECT user_id FROM campaign_recipient WHERE app = ?1 AND name = ?2 ORDER BY user_id LIMIT ?3)
"""
_NAMES: Final = "SELECT name FROM campaign WHERE app = ? AND listed > 0"
_STRIKE: Final = "DELETE FROM campaign_recipient WHERE app = ? AND name = ? AND user_id = ?"
_OLD: Final = """\
SELECT app, name FROM campaign WHERE finished_at < ? AND NOT EXISTS
(SELECT 1 FROM campaign_open WHERE campaign_open.app = campaign.app AND campaign_open.name = campaign.name) LIMIT ?
"""
_DROP: Final = "DELETE FROM campaign WHERE app = ? AND name = ?"

_encode: Final = msgspec.msgpack.Encoder().encode
_campaign: Final = msgspec.msgpack.Decoder(Campaign).decode
_variables: Final = msgspec.msgpack.Decoder(dict[str, str]).decode
_WAITS: Final = frozenset({CampaignState.DRAFT, CampaignState.APPROVED})
"""The states in which nothing is to be done."""


class SqlCampaigns:
    """The campaigns of the store. What is saved and added is durable when the call returns."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def get(self, app: AppId, name: str) -> Campaign | None:
        """Return the campaign of this name; None where the app has none."""
        rows = await self._database.read(lambda connection: connection.execute(_GET, (app, name)).fetchall())
        return _read(*rows[0]) if rows else None

    async def page(self, app: AppId, after: str, n: int) -> list[Campaign]:
        """List at most *n* campaigns of an app by name, those after a name."""
        rows = await self._database.read(lambda connection: connection.execute(_PAGE, (app, after, n)).fetchall())
        return [_read(*row) for row in rows]

    async def open(self) -> list[Campaign]:
        """List the campaigns of all apps of which something is to be done, now or at their time."""
        rows = await self._database.read(lambda connection: connection.execute(_ALL_OPEN).fetchall())
        return [_read(*row) for row in rows]

    async def save(self, campaign: Campaign, seen: int | None, recipients: Sequence[Recipient] | None = None) -> bool:
        """Store *campaign*, if it still has the revision that was *seen*; None is that there is none yet.

        *recipients* are its list from then on; the one before must have been cleared, or be cleared next.
        """
        told = None if recipients is None else tuple(recipients)
        return await self._write(_SAVING, _Save(campaign, seen, told), 1 + len(told or ()))

    async def add(self, app: AppId, name: str, recipients: Sequence[Recipient], by: CallerId, at: Instant) -> bool:
        """Add to the list of a draft, which *by* has changed by that; False in any other state.

        Each user is on it once: the last mention counts. It may be repeated as a whole.
        """
        return await self._write(_ADDING, _More(app, name, tuple(recipients), by, at), len(recipients))

    async def clear_list(self, app: AppId, name: str, n: int) -> int:
        """Delete at most *n* recipients of a list that is being cleared; return how many it was."""
        return await self._write(_CLEARING_LIST, (app, name, n), n)

    async def recipients(self, app: AppId, name: str, after: str, n: int) -> list[Recipient]:
        """Return at most *n* recipients of a list, by user id, those after a user."""
        rows = await self._database.read(
            lambda connection: connection.execute(_RECIPIENTS, (app, name, after, n)).fetchall()
        )
        return [_recipient(*row) for row in rows]

    async def listed(self, app: AppId, name: str, after: str, n: int) -> list[tuple[Recipient, bool]]:
        """Return at most *n* recipients of a list as ``recipients`` does, each with whether they opted out."""
        rows = await self._database.read(
            lambda connection: connection.execute(_LISTED_WITH_OPT_OUTS, (app, name, after, n)).fetchall()
        )
        return [(_recipient(row[0], row[1]), bool(row[2])) for row in rows]

    async def drop_list(self, app: AppId, name: str, n: int) -> int:
        """Delete at most *n* recipients of a list that is not needed any more; return how many it was."""
        return await self._write(_DROPPING_LIST, (app, name, n), n)

    async def close(self, app: AppId, name: str) -> None:
        """Note that nothing is to be done any more."""
        await self._write(_CLOSING, (app, name))

    async def erase(self, app: AppId, user_id: UserId) -> None:
        """Strike a user from every list of the app."""
        await self._write(_ERASING, (app, user_id))

    async def drop_before(self, before: Instant, n: int) -> int:
        """Delete at most *n* campaigns that ended before *before*; return how many it was."""
        return await self._write(_DROPPING, (before, n))

    async def _write(self, kind: OperationKind[Op, Result], op: Op, rows: int = 1) -> Result:
        return await asyncio.shield(self._database.commits.submit(kind, op, rows))


class _Save(Struct, frozen=True):
    campaign: Campaign
    seen: int | None
    recipients: tuple[Recipient, ...] | None


class _More(Struct, frozen=True):
    app: AppId
    name: str
    recipients: tuple[Recipient, ...]
    by: CallerId
    at: Instant


def _read(body: bytes, listed: int) -> Campaign:
    return replace(_campaign(body), listed=listed)


def _recipient(user_id: str, variables: bytes | None) -> Recipient:
    return Recipient(UserId(user_id), {} if variables is None else _variables(variables))


def _save(transaction: Transaction, ops: Sequence[_Save]) -> list[bool]:
    return [_save_one(transaction.connection, op) for op in ops]


def _save_one(connection: Connection, op: _Save) -> bool:
    campaign, key = op.campaign, (op.campaign.app, op.campaign.name)
    body = _encode(campaign)
    if op.seen is None:
        done = connection.execute(_INSERT, (*key, campaign.revision, campaign.finished_at, body)).rowcount
    else:
        done = connection.execute(_UPDATE, (campaign.revision, campaign.finished_at, body, *key, op.seen)).rowcount
    if not done:
        return False
    if campaign.state not in _WAITS:
        connection.execute(_IS_OPEN, key)
    if op.recipients is not None:
        connection.execute(_EMPTY, key)
        _list(connection, *key, op.recipients)
    return True


def _add(transaction: Transaction, ops: Sequence[_More]) -> list[bool]:
    return [_add_one(transaction.connection, op) for op in ops]


def _add_one(connection: Connection, op: _More) -> bool:
    before = _locked(connection, op.app, op.name)
    if before is None or before.state is not CampaignState.DRAFT or not before.has_list or before.clearing:
        return False
    after = replace(before, by=op.by, changed_at=op.at, revision=before.revision + 1, listed=0)
    changed = after.revision, after.finished_at, _encode(after), op.app, op.name, before.revision
    connection.execute(_UPDATE, changed)
    _list(connection, op.app, op.name, op.recipients)
    return True


def _locked(connection: Connection, app: AppId, name: str) -> Campaign | None:
    """Read a campaign as it stays until the transaction ends."""
    rows = connection.execute(_LOCK, (app, name)).fetchall()
    return _read(*rows[0]) if rows else None


def _list(connection: Connection, app: AppId, name: str, recipients: Sequence[Recipient]) -> None:
    last = {each.user_id: each for each in recipients}
    named = msgspec.json.encode(list(last)).decode()
    there = connection.execute(_NAMED.format(texts=connection.dialect.texts), (app, name, named)).fetchone()[0]
    rows = [(app, name, each.user_id, _encode(each.variables) if each.variables else None) for each in last.values()]
    connection.executemany(_ADD, rows)
    connection.execute(_LISTED, (len(last) - there, app, name))


def _drop_list(transaction: Transaction, ops: Sequence[tuple[AppId, str, int]]) -> list[int]:
    return [transaction.connection.execute(_DROP_LIST, op).rowcount for op in ops]


def _clear_list(transaction: Transaction, ops: Sequence[tuple[AppId, str, int]]) -> list[int]:
    return [_clear_one(transaction.connection, *op) for op in ops]


def _clear_one(connection: Connection, app: AppId, name: str, n: int) -> int:
    found = _locked(connection, app, name)
    return connection.execute(_DROP_LIST, (app, name, n)).rowcount if found is not None and found.clearing else 0


def _close(transaction: Transaction, ops: Sequence[tuple[AppId, str]]) -> list[None]:
    transaction.connection.executemany(_CLOSE, ops)
    return [None] * len(ops)


def _erase(transaction: Transaction, ops: Sequence[tuple[AppId, UserId]]) -> list[None]:
    connection = transaction.connection
    for app, user_id in ops:
        for (name,) in connection.execute(_NAMES, (app,)).fetchall():
            gone = connection.execute(_STRIKE, (app, name, user_id)).rowcount
            connection.execute(_LISTED, (-gone, app, name))
    return [None] * len(ops)


def _drop(transaction: Transaction, ops: Sequence[tuple[Instant, int]]) -> list[int]:
    dropped = []
    for before, n in ops:
        old = transaction.connection.execute(_OLD, (before, n)).fetchall()
        transaction.connection.executemany(_DROP, [tuple(row) for row in old])
        dropped.append(len(old))
    return dropped


_SAVING = OperationKind("save_campaign", _save, durable=True)
_ADDING = OperationKind("list_campaign", _add, durable=True)
_DROPPING_LIST = OperationKind("drop_campaign_list", _drop_list, durable=False)
_CLEARING_LIST = OperationKind("clear_campaign_list", _clear_list, durable=False)
_CLOSING = OperationKind("close_campaign", _close, durable=False)
_ERASING = OperationKind("erase_campaign_recipient", _erase, durable=True)
_DROPPING = OperationKind("drop_campaigns", _drop, durable=False)
