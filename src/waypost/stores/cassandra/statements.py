"""Every statement that is made of devices, with its consistency: each names the whole partition key.

The walk alone goes by ranges of the key's hash. Nothing is filtered by the server.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from waypost.domain.device import Device, SubscriptionKeys, TokenUse
from waypost.stores.cassandra.session import Row, Session, Statement
from waypost.stores.cassandra.settings import CassandraSettings

_COLUMNS = (
    "app, user_id, device_id, platform, provider_token, registered_at, last_seen_at, token_updated_at, used_at,"
    " p256dh, auth, app_version, os_version, locale, active, token_use, claim"
)
_LOOK_UP = "SELECT {columns} FROM {keyspace}.device WHERE app = ? AND user_id = ?"
_LOOK_UP_MANY = "SELECT {columns} FROM {keyspace}.device WHERE app = ? AND user_id IN ?"
_PARTITION = "SELECT {columns}, deactivated_at, version FROM {keyspace}.device WHERE app = ? AND user_id = ?"
_WALK = "SELECT {columns} FROM {keyspace}.device LIMIT ?"
_WALK_ON = "SELECT {columns} FROM {keyspace}.device WHERE token(app, user_id) > token(?, ?) LIMIT ?"
_MOVE = "UPDATE {keyspace}.device SET version = ? WHERE app = ? AND user_id = ? IF version = ?"
_PUT = """\
INSERT INTO {keyspace}.device (app, user_id, device_id, platform, provider_token, registered_at, last_seen_at,
    token_updated_at, p256dh, auth, app_version, os_version, locale, active, token_use, claim)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
_STOP = """\
UPDATE {keyspace}.device SET active = false, deactivated_at = ?
WHERE app = ? AND user_id = ? AND platform = ? AND device_id = ?
"""
_REMOVE = "DELETE FROM {keyspace}.device WHERE app = ? AND user_id = ? AND platform = ? AND device_id = ?"
_DROP = "DELETE version FROM {keyspace}.device WHERE app = ? AND user_id = ? IF version = ?"
_USE = """\
UPDATE {keyspace}.device USING TIMESTAMP ? SET used_at = ?
WHERE app = ? AND user_id = ? AND platform = ? AND device_id = ?
"""
_OWNER = "SELECT user_id, claim FROM {keyspace}.token_owner WHERE app = ? AND token_hash = ?"
_CLAIM = "INSERT INTO {keyspace}.token_owner (app, token_hash, user_id, claim) VALUES (?, ?, ?, ?) IF NOT EXISTS"
_TAKE = """\
UPDATE {keyspace}.token_owner SET user_id = ?, claim = ? WHERE app = ? AND token_hash = ? IF claim = ?
"""
_FORGET = "DELETE FROM {keyspace}.token_owner WHERE app = ? AND token_hash = ? IF claim = ?"

_TOKEN_USES: Final[Mapping[str, TokenUse]] = {word.value: word for word in TokenUse}


class Statements(Struct, frozen=True):
    """The statements, prepared."""

    look_up: Statement
    look_up_many: Statement
    partition: Statement
    walk: Statement
    walk_on: Statement
    move: Statement
    put: Statement
    stop: Statement
    remove: Statement
    drop: Statement
    use: Statement
    owner: Statement
    claim: Statement
    take: Statement
    forget: Statement


async def prepare_all(session: Session, settings: CassandraSettings) -> Statements:
    """Have every statement parsed by the cluster."""
    reads, keyspace = settings.read_consistency, settings.keyspace

    async def read(cql: str) -> Statement:
        return await session.prepare(cql.format(keyspace=keyspace, columns=_COLUMNS), reads, repeatable=True)

    async def write(cql: str, *, repeatable: bool = False) -> Statement:
        return await session.prepare(cql.format(keyspace=keyspace, columns=_COLUMNS), repeatable=repeatable)

    return Statements(
        look_up=await read(_LOOK_UP),
        look_up_many=await read(_LOOK_UP_MANY),
        partition=await write(_PARTITION, repeatable=True),
        walk=await read(_WALK),
        walk_on=await read(_WALK_ON),
        move=await write(_MOVE),
        put=await write(_PUT),
        stop=await write(_STOP),
        remove=await write(_REMOVE),
        drop=await write(_DROP),
        use=await write(_USE, repeatable=True),
        owner=await write(_OWNER, repeatable=True),
        claim=await write(_CLAIM),
        take=await write(_TAKE),
        forget=await write(_FORGET),
    )


def device_of(row: Row) -> Device | None:
    """Read the device of a row; None where it holds only a version, or a use without registration."""
    app, user_id, device_id, platform, token, registered, seen, updated, used = row[:9]
    if device_id is None or token is None:
        return None
    p256dh, auth, app_version, os_version, locale, active, token_use = row[9:16]
    return Device(
        app,
        user_id,
        device_id,
        platform,
        token,
        registered,
        seen,
        updated,
        seen if used is None else max(seen, used),
        None if p256dh is None else SubscriptionKeys(p256dh, auth),
        app_version,
        os_version,
        locale,
        active,
        _TOKEN_USES.get(token_use, token_use),
    )
