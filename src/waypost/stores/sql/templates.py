"""Templates on SQL: one row for each template and one for each version; see ports.templates.

A draft that is replaced is deleted, and its number is not used again: so a row is never changed but for the time at
which it was published, and what was read of it once may be kept.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

import msgspec

from waypost.domain.ids import AppId
from waypost.domain.template import TemplateContent, Version
from waypost.domain.time import Instant
from waypost.ports.templates import TemplateRecord, VersionRecord, Wanted
from waypost.stores.sql.added import AddedTable
from waypost.stores.sql.database import Database
from waypost.stores.sql.driver import Connection
from waypost.stores.sql.transaction import OperationKind, Transaction

TEMPLATES: Final = AddedTable(
    "template",
    "CREATE TABLE IF NOT EXISTS template"
    " (app {text} NOT NULL, name {text} NOT NULL, latest {number} NOT NULL, published {number},"
    " retired_at {number}, PRIMARY KEY (app, name)){layout}",
)
VERSIONS: Final = AddedTable(
    "template_version",
    "CREATE TABLE IF NOT EXISTS template_version"
    " (app {text} NOT NULL, name {text} NOT NULL, number {number} NOT NULL, content {blob} NOT NULL,"
    " created_at {number} NOT NULL, published_at {number}, PRIMARY KEY (app, name, number)){layout}",
)
KEPT: Final = 256
"""The most versions that a process remembers, decoded."""

_NEXT: Final = """\
INSERT INTO template (app, name, latest) VALUES (?, ?, 1)
ON CONFLICT (app, name) DO UPDATE SET latest = template.latest + 1 RETURNING latest
"""
_DROP_DRAFT: Final = "DELETE FROM template_version WHERE app = ? AND name = ? AND published_at IS NULL"
_ADD: Final = "INSERT INTO template_version (app, name, number, content, created_at) VALUES (?, ?, ?, ?, ?)"
_HOLD: Final = "UPDATE template SET latest = latest WHERE app = ? AND name = ?"
"""Keeps others from writing the template until this transaction ends; everybody takes its row first."""
_PUBLISH_VERSION: Final = """\
UPDATE template_version SET published_at = COALESCE(published_at, ?) WHERE app = ? AND name = ? AND number = ?
"""
_PUBLISH: Final = "UPDATE template SET published = ?, retired_at = NULL WHERE app = ? AND name = ?"
_RETIRE: Final = "UPDATE template SET retired_at = ? WHERE app = ? AND name = ?"
_RECORD: Final = """\
SELECT name, published, retired_at, (SELECT MAX(number) FROM template_version AS v
  WHERE v.app = t.app AND v.name = t.name AND v.published_at IS NULL)
FROM template AS t
"""
_LIST: Final = f"{_RECORD} WHERE app = ? AND name > ? ORDER BY name LIMIT ?"
_SHOW: Final = f"{_RECORD} WHERE app = ? AND name = ?"
_VERSIONS: Final = """\
SELECT number, created_at, published_at FROM template_version WHERE app = ? AND name = ? ORDER BY number DESC
"""
_PUBLISHED: Final = "SELECT published FROM template WHERE app = ? AND name = ? AND retired_at IS NULL"
_CONTENT: Final = "SELECT content FROM template_version WHERE app = ? AND name = ? AND number = ?"

_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder(TemplateContent).decode

Key = tuple[AppId, str, int]


class SqlTemplates:
    """See ports.templates.Templates."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._known: dict[Key, Version] = {}

    async def put(self, app: AppId, name: str, content: TemplateContent, now: Instant) -> int:
        """See Templates."""
        return await self._database.commits.submit(_PUTTING, (app, name, _encode(content), now))

    async def publish(self, app: AppId, name: str, number: int, now: Instant) -> bool:
        """See Templates."""
        return await self._database.commits.submit(_PUBLISHING, (app, name, number, now))

    async def retire(self, app: AppId, name: str, now: Instant) -> bool:
        """See Templates."""
        return await self._database.commits.submit(_RETIRING, (app, name, now))

    async def list(self, app: AppId, after: str, n: int) -> list[TemplateRecord]:
        """See Templates."""
        return await self._database.read(
            lambda connection: [_record(row) for row in connection.execute(_LIST, (app, after, n)).fetchall()]
        )

    async def show(self, app: AppId, name: str) -> TemplateRecord | None:
        """See Templates."""
        row = await self._database.read(lambda connection: connection.execute(_SHOW, (app, name)).fetchone())
        return None if row is None else _record(row)

    async def versions(self, app: AppId, name: str) -> Sequence[VersionRecord]:
        """See Templates."""
        return await self._database.read(
            lambda connection: [VersionRecord(*row) for row in connection.execute(_VERSIONS, (app, name)).fetchall()]
        )

    async def chosen(self, app: AppId, wanted: Collection[Wanted]) -> Mapping[Wanted, Version]:
        """See Templates."""
        names = {name for name, _ in wanted}
        published = await self._database.read(lambda connection: _published(connection, app, names))
        known = [each for each in wanted if each[0] in published]
        numbers = {(name, number): number or published[name] for name, number in known}
        found = await self.of(app, [(name, number) for (name, _), number in numbers.items() if number is not None])
        chosen = {each: found.get((each[0], number or 0)) for each, number in numbers.items()}
        return {each: version for each, version in chosen.items() if version is not None}

    async def of(self, app: AppId, wanted: Collection[tuple[str, int]]) -> Mapping[tuple[str, int], Version]:
        """See Templates."""
        unknown = [each for each in wanted if (app, *each) not in self._known]
        read = await self._database.read(lambda connection: _contents(connection, app, unknown)) if unknown else {}
        found = {each: read.get(each) or self._known.get((app, *each)) for each in wanted}
        for (name, number), version in read.items():
            self._known[app, name, number] = version
        while len(self._known) > KEPT:
            del self._known[next(iter(self._known))]
        return {each: version for each, version in found.items() if version is not None}


def _record(row: Sequence[object]) -> TemplateRecord:
    name, published, retired_at, draft = row
    return TemplateRecord(name, published, draft, retired_at)  # type: ignore[arg-type]  # as the table has them


def _published(connection: Connection, app: AppId, names: Iterable[str]) -> dict[str, int | None]:
    rows = {name: connection.execute(_PUBLISHED, (app, name)).fetchone() for name in names}
    return {name: row[0] for name, row in rows.items() if row is not None}


def _contents(connection: Connection, app: AppId, wanted: Iterable[tuple[str, int]]) -> dict[tuple[str, int], Version]:
    rows = {each: connection.execute(_CONTENT, (app, *each)).fetchone() for each in set(wanted)}
    return {each: Version(*each, _decode(row[0])) for each, row in rows.items() if row is not None}


def _put(transaction: Transaction, drafts: Sequence[tuple[AppId, str, bytes, Instant]]) -> list[int]:
    numbers: list[int] = []
    for app, name, content, now in drafts:
        (number,) = transaction.connection.execute(_NEXT, (app, name)).fetchone() or (0,)
        transaction.connection.execute(_DROP_DRAFT, (app, name))
        transaction.connection.execute(_ADD, (app, name, number, content, now))
        numbers.append(number)
    return numbers


def _publish(transaction: Transaction, orders: Sequence[tuple[AppId, str, int, Instant]]) -> list[bool]:
    done: list[bool] = []
    for app, name, number, now in orders:
        transaction.connection.execute(_HOLD, (app, name))
        is_there = transaction.connection.execute(_PUBLISH_VERSION, (now, app, name, number)).rowcount > 0
        if is_there:
            transaction.connection.execute(_PUBLISH, (number, app, name))
        done.append(is_there)
    return done


def _retire(transaction: Transaction, orders: Sequence[tuple[AppId, str, Instant]]) -> list[bool]:
    return [transaction.connection.execute(_RETIRE, (at, app, name)).rowcount > 0 for app, name, at in orders]


_PUTTING: Final = OperationKind("put_template", _put, durable=True)
_PUBLISHING: Final = OperationKind("publish_template", _publish, durable=True)
_RETIRING: Final = OperationKind("retire_template", _retire, durable=True)
