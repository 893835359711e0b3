"""The log of the notifications service: a row for each job, opened before devices are looked up, and closed once."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from importlib.resources import files
from typing import Any, Final

import msgspec
import psycopg
from msgspec import Struct
from psycopg import AsyncConnection, sql

from waypost.compat.jobs_stream.entry import LogStatus
from waypost.compat.jobs_stream.pool import ConnectionPool
from waypost.compat.jobs_stream.tables import LOG_NAMES, Table, columns_of, table_of
from waypost.domain.errors import ConfigurationError
from waypost.domain.job import Job

TABLE: Final = "notifications.notification_log"
VARIABLE: Final = "LOG_COLUMNS"
_ONE_AT_A_TIME = "SELECT pg_advisory_xact_lock(hashtext('waypost notifications-service'))"
_OF_JOB = ("user", "job", "channel", "title", "body", "data")
_TIMES = ("created", "updated")
_NUL = re.compile(r"(?<!\\)((?:\\\\)*)\\u0000")
"""The escape in JSON; behind an odd backslash the same letters are text."""

Keep = Callable[[Sequence[str | None]], Awaitable[None]]


class Closed(Struct, frozen=True):
    """The end of a job."""

    row: str
    status: LogStatus
    tokens: int
    sent: int


class JobLog:
    """Writes one table, whatever its owner made of it beside what is needed here."""

    def __init__(self, pool: ConnectionPool, table: Table) -> None:
        self._pool = pool
        self._given = [each for each in _OF_JOB if each in table.columns]
        self._open, self._close = _opening(table, self._given), _closing(table)
        id_, status = table.columns["id"], table.columns["status"]
        self._known = (
            f"SELECT {id_.quoted}::text, {status.quoted}::text <> 'pending' "  # noqa: S608 - names as the server has them
            f"FROM {table.name} WHERE {id_.quoted} = ANY($1::text[]::{id_.type}[])"
        )

    async def open(self, jobs: Sequence[tuple[str, Job]], keep: Keep) -> list[str | None]:
        """Write a ``pending`` row for each entry and its job; None for one whose row the database refuses.

        *keep* is given the rows before they are there for good: whoever fails between the two leaves none behind.
        """
        async with self._pool.connection() as connection:
            try:
                return await self._opened(connection, jobs, keep, apart=False)
            except (psycopg.DataError, psycopg.IntegrityError):
                return await self._opened(connection, jobs, keep, apart=True)

    async def close(self, ends: Sequence[Closed]) -> None:
        """Write how each job ended; a row that has its end already keeps it."""
        values: list[list[Any]] = [[each.row for each in ends], [each.status.value for each in ends]]
        values += [[each.tokens for each in ends], [each.sent for each in ends]]
        async with self._pool.connection() as connection:
            await connection.execute(self._close, values)

    async def known(self, rows: Sequence[str]) -> dict[str, bool]:
        """Find which of *rows* are there, and whether they have their end."""
        async with self._pool.connection() as connection:
            return dict(await (await connection.execute(self._known, (list(rows),))).fetchall())

    async def _opened(
        self, connection: AsyncConnection[Any], jobs: Sequence[tuple[str, Job]], keep: Keep, *, apart: bool
    ) -> list[str | None]:
        """Write all in one statement, or each by itself where one of them was refused."""
        rows: list[str | None] = []
        async with connection.transaction():
            for part in [jobs] if not apart else [[each] for each in jobs]:
                try:
                    async with connection.transaction():
                        rows += await self._insert(connection, part)
                except (psycopg.DataError, psycopg.IntegrityError):
                    if not apart:
                        raise
                    rows.append(None)
            await keep(rows)
        return rows

    async def _insert(self, connection: AsyncConnection[Any], jobs: Sequence[tuple[str, Job]]) -> list[str]:
        values = [[_value(meaning, entry, job) for entry, job in jobs] for meaning in self._given]
        return [row for (row,) in await (await connection.execute(self._open, values)).fetchall()]


def _value(meaning: str, entry: str, job: Job) -> str | None:
    match meaning:
        case "user":
            return job.user_id
        case "job":
            return entry
        case "data":
            return _NUL.sub(r"\1", msgspec.json.encode(job.data).decode())  # PostgreSQL's JSON has none
        case _:
            text: str | None = getattr(job, meaning)
            return text


def _opening(table: Table, given: Sequence[str]) -> str:
    columns = [table.columns[meaning].quoted for meaning in given]
    values = [table.cast(meaning, f"v.c{n}") for n, meaning in enumerate(given)]
    columns.append(table.columns["status"].quoted)
    values.append(table.cast("status", "'pending'::text"))
    for meaning in _TIMES:
        if meaning in table.columns:
            columns.append(table.columns[meaning].quoted)
            values.append("now()")
    if table.columns["id"].is_needed:
        columns.append(table.columns["id"].quoted)
        values.append(table.cast("id", "gen_random_uuid()::text"))
    bound = ", ".join(f"${n}::text[]" for n, _ in enumerate(given, 1))
    named = ", ".join([*(f"c{n}" for n, _ in enumerate(given)), "place"])
    return (
        f"INSERT INTO {table.name} ({', '.join(columns)}) SELECT {', '.join(values)} "  # noqa: S608 - as above
        f"FROM unnest({bound}) WITH ORDINALITY AS v({named}) ORDER BY place "
        f"RETURNING {table.columns['id'].quoted}::text"
    )


def _closing(table: Table) -> str:
    changed = [f"{table.columns['status'].quoted} = {table.cast('status', 'v.status')}"]
    counted = [each for each in ("tokens", "sent") if each in table.columns]
    changed += [f"{table.columns[each].quoted} = v.{each}" for each in counted]
    if "updated" in table.columns:
        changed.append(f"{table.columns['updated'].quoted} = now()")
    return (
        f"UPDATE {table.name} AS t SET {', '.join(changed)} "  # noqa: S608 - as above
        "FROM unnest($1::text[], $2::text[], $3::int[], $4::int[]) AS v(id, status, tokens, sent) "
        f"WHERE t.{table.columns['id'].quoted} = {table.cast('id', 'v.id')} "
        f"AND t.{table.columns['status'].quoted}::text = 'pending'"
    )


async def log_in(pool: ConnectionPool, name: str, named: dict[str, str]) -> JobLog:
    """Open the log, made where it is missing; ConfigurationError where rows cannot be written into it."""
    async with pool.connection() as connection:
        found = await columns_of(connection, name)
        if found is None:
            await _make(connection, name)
            found = await columns_of(connection, name)
            assert found is not None, "it was made just now"
    table = table_of(found, VARIABLE, LOG_NAMES, named, ("id", "user", "status"))
    filled = {each.name for each in table.columns.values()}
    for column in found[1]:
        if column.is_needed and column.name not in filled:
            raise ConfigurationError(VARIABLE, f"{table.name} needs a value in {column.name}, and there is none for it")
    return JobLog(pool, table)


async def _make(connection: AsyncConnection[Any], name: str) -> None:
    """Run the migration; several processes that start at once do so one after the other."""
    schema, _, table = name.rpartition(".")
    script = (files(__package__) / "001_init.sql").read_text(encoding="utf-8")
    if name != TABLE:
        quoted = sql.Identifier(*([schema] if schema else []), table).as_string(None)
        script = script.replace(TABLE, quoted).replace(
            "CREATE SCHEMA IF NOT EXISTS notifications;",
            f"CREATE SCHEMA IF NOT EXISTS {sql.Identifier(schema).as_string(None)};" if schema else "",
        )
    async with connection.transaction():
        await connection.execute(_ONE_AT_A_TIME)
        for statement in script.split(";"):
            if statement.strip():
                await connection.execute(statement)
