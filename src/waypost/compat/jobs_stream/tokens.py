"""The registry of the notifications service: rows with a user and a token, each its own device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import psycopg
from psycopg import AsyncConnection

from waypost.compat.jobs_stream.pool import ConnectionPool
from waypost.compat.jobs_stream.tables import TOKEN_NAMES, Table, columns_of, table_of
from waypost.domain.device import Device, Platform
from waypost.domain.errors import ConfigurationError
from waypost.domain.ids import AppId, DeviceId, UserId
from waypost.domain.time import Instant
from waypost.ports.devices import Lookup

ANY: Final = Platform("any")
"""Whatever it runs, FCM reaches it."""
VARIABLE: Final = "TOKEN_COLUMNS"


class TokenLookup(Lookup):
    """See Lookup; a token that is dead is deleted, unless its row holds another one by then."""

    def __init__(self, pool: ConnectionPool, table: Table) -> None:
        self._pool = pool
        id_, user, token = (table.columns[each].quoted for each in ("id", "user", "token"))
        self._find = (
            f"SELECT {user}::text, {id_}::text, {token} FROM {table.name} "  # noqa: S608 - names as the server has them
            f"WHERE {user} = ANY($1::text[]::{table.columns['user'].type}[]) AND {token} IS NOT NULL"
        )
        self._remove = (
            f"DELETE FROM {table.name} AS t USING unnest($1::text[], $2::bytea[]) AS dead(id, hash) "  # noqa: S608 - as above
            f"WHERE t.{id_} = {table.cast('id', 'dead.id')} "
            f"AND substring(sha256(convert_to(t.{token}, 'UTF8')) FROM 1 FOR 16) = dead.hash"
        )

    async def for_users(self, users: Sequence[tuple[AppId, UserId]]) -> list[list[Device]]:
        """See Lookup; a user who cannot be one, since the column is a number or an UUID, has no device."""
        async with self._pool.connection() as connection:
            rows = await self._rows(connection, list({user for _, user in users}))
        found: dict[str, list[Device]] = {}
        app = users[0][0] if users else AppId("")
        for user, row, token in rows:
            device = Device(app, UserId(user), DeviceId(row), ANY, token, _LONG_AGO, _LONG_AGO, _LONG_AGO)
            found.setdefault(user, []).append(device)
        return [found.get(user, []) for _, user in users]

    async def remove(self, dead: Sequence[tuple[DeviceId, bytes]]) -> int:
        """Delete the rows that still hold the token of this hash; how many there were."""
        async with self._pool.connection() as connection:
            cursor = await connection.execute(self._remove, ([row for row, _ in dead], [hash_ for _, hash_ in dead]))
            return cursor.rowcount

    async def _rows(self, connection: AsyncConnection[Any], users: Sequence[str]) -> list[tuple[str, str, str]]:
        try:
            return await (await connection.execute(self._find, (list(users),))).fetchall()
        except psycopg.DataError:
            if len(users) == 1:
                return []
        return [row for user in users for row in await self._rows(connection, [user])]


_LONG_AGO: Final = Instant(0)


async def tokens_in(pool: ConnectionPool, table: str, named: dict[str, str]) -> TokenLookup:
    """Open the table of tokens; ConfigurationError where there is none, or a column is not found."""
    async with pool.connection() as connection:
        found = await columns_of(connection, table)
    if found is None:
        raise ConfigurationError("TOKEN_TABLE", f"there is no table {table}")
    return TokenLookup(pool, table_of(found, VARIABLE, TOKEN_NAMES, named, tuple(TOKEN_NAMES)))
