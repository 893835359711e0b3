"""The roll-up on SQL: what the journal says is counted once, since the reader's position is in the same transaction.

rollup         a row for each quarter of an hour and everything that it is told apart by, two sums in it
rollup_stage   what was counted of a notification with several targets, and of buttons; it goes with its notification
user_hour      when each user is sent to and reads, by month and hour of the day; under "" those of all users
event_slot     how often each event happened, by quarters of an hour
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import Struct

from waypost.domain.address import FEED
from waypost.domain.content import Kind
from waypost.domain.ids import AppId, DeviceId, NotificationId, UserId, format_id
from waypost.domain.moves import DeliveryMoved
from waypost.domain.rollup import (
    Facts,
    Happening,
    Labels,
    Stages,
    Target,
    happening_of,
    happening_of_action,
    tally,
)
from waypost.domain.tracked import NotificationEvent
from waypost.domain.variants import VARIANT
from waypost.ports.journal import JournalRow
from waypost.stores.sql.added import AddedTable
from waypost.stores.sql.database import Database
from waypost.stores.sql.driver import Connection
from waypost.stores.sql.reached import go_behind
from waypost.stores.sql.rows import select_in, upsert_all
from waypost.stores.sql.transaction import OperationKind, Transaction
from waypost.stores.sql.user_events import ERASE_EVENTS, Hears, count_events

READER: Final = "rollup"
"""The name of the reader of the journal."""
MOST_MOVES: Final = 250
"""The changes that are counted in one transaction, so that no other waits for long."""

ROLLUP: Final = AddedTable(
    "rollup",
    "CREATE TABLE IF NOT EXISTS rollup"
    " (app {text} NOT NULL, slot {number} NOT NULL, event {text} NOT NULL, type {text} NOT NULL,"
    " channel {text} NOT NULL, platform {text} NOT NULL, campaign {text} NOT NULL, variant {text} NOT NULL,"
    " template {text} NOT NULL, deliveries {number} NOT NULL, notifications {number} NOT NULL,"
    " PRIMARY KEY (app, slot, campaign, event, type, channel, platform, variant, template),"
    " UNIQUE (app, campaign, slot, event, type, channel, platform, variant, template, deliveries, notifications)"
    "){layout}",
)
"""``slot`` is quarters of an hour since 1970; the second key answers for a campaign over all of its time."""
ROLLUP_STAGE: Final = AddedTable(
    "rollup_stage",
    "CREATE TABLE IF NOT EXISTS rollup_stage"
    " (notification_id {blob} NOT NULL, n {number} NOT NULL, stages {number} NOT NULL,"
    " PRIMARY KEY (notification_id, n)){layout}",
    of_notification=True,
)
USER_HOUR: Final = AddedTable(
    "user_hour",
    "CREATE TABLE IF NOT EXISTS user_hour"
    " (app {text} NOT NULL, user_id {text} NOT NULL, month {number} NOT NULL, hour {number} NOT NULL,"
    " sent {number} NOT NULL, opened {number} NOT NULL, PRIMARY KEY (app, month, user_id, hour)){layout}",
)
"""``month`` is blocks of 30 days since 1970, ``hour`` is that of the day in UTC."""
_ADD: Final = (
    "INSERT INTO rollup (app, slot, event, type, channel, platform, campaign, variant, template, deliveries,"
    " notifications) VALUES "
)
_ADDED: Final = (
    " ON CONFLICT (app, slot, campaign, event, type, channel, platform, variant, template) DO UPDATE SET"
    " deliveries = rollup.deliveries + excluded.deliveries,"
    " notifications = rollup.notifications + excluded.notifications"
)
_ADD_HOURS: Final = "INSERT INTO user_hour (app, user_id, month, hour, sent, opened) VALUES "
_HOURS_ADDED: Final = (
    " ON CONFLICT (app, month, user_id, hour) DO UPDATE SET sent = user_hour.sent + excluded.sent,"
    " opened = user_hour.opened + excluded.opened"
)
_NOTE: Final = "INSERT INTO rollup_stage (notification_id, n, stages) VALUES "
_NOTED: Final = " ON CONFLICT (notification_id, n) DO UPDATE SET stages = excluded.stages"
_STAND_STILL: Final = "UPDATE reader SET position = position WHERE name = ?"
_MONTHS: Final = "SELECT min(month), max(month) FROM user_hour WHERE app = ?"
_ERASE_HOURS: Final = "DELETE FROM user_hour WHERE app = ? AND month = ? AND user_id = ?"

_NOTIFICATIONS: Final = "SELECT id, app, user_id, kind, job, seq, variables FROM notification WHERE id IN ({keys})"
_CONTENTS: Final = "SELECT seq, body FROM content WHERE seq IN ({keys})"
_TARGETS: Final = (
    "SELECT notification_id, n, device_id, channel, sent_at FROM receipt WHERE notification_id IN ({keys})"
)
_JOBS: Final = "SELECT number, id FROM bulk_job WHERE number IN ({keys})"
_PLATFORMS: Final = "SELECT asked.place, device_id, platform FROM {devices_of_users}"
_STAGES: Final = "SELECT notification_id, n, stages FROM rollup_stage WHERE notification_id IN ({keys})"


class _Said(Struct, frozen=True):
    """The fields that are read of a content."""

    type: Any = None
    campaign: Any = None
    variant: Any = None
    template: Any = None


class _Row(NamedTuple):
    """A row of a notification."""

    id: NotificationId
    app: AppId
    user_id: UserId
    kind: str
    job: int | None
    seq: int
    variables: bytes | None

    @property
    def content_seq(self) -> int:
        """The number under which its content is."""
        return self.seq if self.job is None else self.job


_NOTHING: Final = _Said()
Platforms = Mapping[tuple[AppId, UserId, DeviceId], str]
_Counted = Counter[tuple[AppId, NotificationEvent]]
_said = msgspec.msgpack.Decoder(_Said).decode
_variables = msgspec.msgpack.Decoder(dict[str, str]).decode
_SILENT: Final = Kind.SILENT.value


class _Page(Struct, frozen=True):
    """Rows of the journal, up to *until*, as what happened in them."""

    first: int
    until: int
    happenings: tuple[Happening, ...]
    platforms: Platforms | None
    hears: Sequence[Hears]


class SqlRollup:
    """The counts of what was sent and what became of it."""

    def __init__(self, database: Database, *, with_devices: bool) -> None:
        """Create it; not *with_devices*, the registry is kept elsewhere: who takes a page says the platforms."""
        self._database = database
        self.with_devices = with_devices

    async def take(
        self, rows: Sequence[JournalRow], hears: Sequence[Hears] = (), platforms: Platforms | None = None
    ) -> _Counted:
        """Count what *rows* of the journal say, once, and stand behind them; return what it was of notifications."""
        counted: _Counted = Counter()
        for page in _pages(rows, hears, platforms):
            of_page = await self._database.commits.submit(_TAKING, page, rows=len(page.happenings))
            counted.update(of_page)
        return counted

    async def erase(self, app: AppId, user_id: UserId) -> None:
        """Forget what a user did and when; may be repeated."""
        await self._database.commits.submit(_ERASING, (app, user_id))


def _erase(transaction: Transaction, users: Sequence[tuple[AppId, UserId]]) -> list[None]:
    """Erase *users* while nobody counts: whoever had read whose a notification is has written that by then."""
    connection = transaction.connection
    connection.execute(_STAND_STILL, (READER,))
    for app, user_id in users:
        first, last = connection.execute(_MONTHS, (app,)).fetchone()
        for month in range(first, last + 1) if first is not None else ():
            connection.execute(_ERASE_HOURS, (app, month, user_id))
        connection.execute(ERASE_EVENTS, (app, user_id))
    return [None] * len(users)


def users_in(rows: Iterable[JournalRow]) -> list[tuple[AppId, UserId]]:
    """List the users of whose deliveries *rows* tell anything that is counted."""
    moves = (move for row in rows for move in row.moves if isinstance(move, DeliveryMoved) and happening_of(move))
    return list(dict.fromkeys((move.app, move.user_id) for move in moves))


def _pages(rows: Sequence[JournalRow], hears: Sequence[Hears], platforms: Platforms | None) -> Iterable[_Page]:
    found: list[Happening] = []
    first: int | None = None
    for at, row in enumerate(rows):
        first = row.position if first is None else first
        deliveries = (happening_of(move) for move in row.moves if isinstance(move, DeliveryMoved))
        found += [each for each in deliveries if each is not None]
        found += [happening_of_action(each) for each in row.actions]
        if len(found) >= MOST_MOVES or at == len(rows) - 1:
            yield _Page(first, row.position, tuple(found), platforms, hears)
            found, first = [], None


def _take(transaction: Transaction, pages: Sequence[_Page]) -> list[_Counted]:
    return [_take_page(transaction, page) for page in pages]


def _take_page(transaction: Transaction, page: _Page) -> _Counted:
    if not go_behind(transaction.connection, READER, page.first, page.until) or not page.happenings:
        return Counter()
    return _count(transaction, page)


def _count(transaction: Transaction, page: _Page) -> _Counted:
    connection = transaction.connection
    known = _facts(connection, list(dict.fromkeys(each.notification_id for each in page.happenings)), page.platforms)
    pressed = {each.notification_id for each in page.happenings if each.may_repeat}
    staged = [each for each, facts in known.items() if len(facts.targets) > 1 or each in pressed]
    stages: Stages = {(NotificationId(one), n): bits for one, n, bits in select_in(connection, _STAGES, staged)}
    found = tally(page.happenings, known, stages)
    rows = [(*cell[:2], cell.event.value, *cell[3:], *sums) for cell, sums in sorted(found.cells.items())]
    upsert_all(connection, _ADD, f"({', '.join('?' * 11)})", _ADDED, rows)
    upsert_all(connection, _NOTE, "(?, ?, ?)", _NOTED, [(*key, bits) for key, bits in sorted(found.stages.items())])
    count_events(connection, found.events)
    hours = [(*key, *sums) for key, sums in sorted(found.hours.items())]
    upsert_all(connection, _ADD_HOURS, "(?, ?, ?, ?, ?, ?)", _HOURS_ADDED, hours)
    for hears in page.hears:
        hears(transaction, found.events)
    counted: _Counted = Counter()
    for cell, (_, notifications) in found.cells.items():
        counted[cell.app, cell.event] += notifications
    return counted


def _facts(
    connection: Connection, ids: Sequence[NotificationId], platforms: Platforms | None
) -> dict[NotificationId, Facts]:
    """Read what is counted apart; what is silent nobody opens, so that it is not counted."""
    rows = [_Row(*row) for row in select_in(connection, _NOTIFICATIONS, ids)]
    rows = [row for row in rows if row.kind != _SILENT]
    if not rows:
        return {}
    if platforms is None:
        platforms = _platforms(connection, {(row.app, row.user_id) for row in rows})
    labels = _labels(connection, rows)
    targets: dict[NotificationId, dict[int, Target]] = {row.id: {} for row in rows}
    users = {row.id: (row.app, row.user_id) for row in rows}
    audiences: set[NotificationId] = set()
    for one, n, device_id, channel, sent_at in select_in(connection, _TARGETS, list(targets)):
        app, user_id = users[one]
        platform = platforms.get((app, user_id, device_id), "")
        targets[one][n] = Target(channel or "", platform, device_id == FEED, sent_at)
        if device_id == user_id:
            audiences.add(one)
    return {
        row.id: Facts(row.app, None if row.id in audiences else row.user_id, labels[row.id], targets[row.id])
        for row in rows
    }


def _platforms(connection: Connection, users: Collection[tuple[AppId, UserId]]) -> Platforms:
    asked = list(users)
    sql = _PLATFORMS.format(devices_of_users=connection.dialect.devices_of_users)
    rows = connection.execute(sql, (json.dumps(asked),)).fetchall()
    return {(*asked[place], device_id): platform for place, device_id, platform in rows}


def _labels(connection: Connection, rows: Sequence[_Row]) -> dict[NotificationId, Labels]:
    """Read the labels of notifications; without a campaign of its own, its bulk job is one."""
    bodies = select_in(connection, _CONTENTS, sorted({row.content_seq for row in rows}))
    said = {seq: _read(body) for seq, body in bodies}
    numbers = sorted({row.job for row in rows if row.job is not None})
    jobs = {number: format_id(NotificationId(one)) for number, one in select_in(connection, _JOBS, numbers)}
    return {row.id: _labels_of(row, said.get(row.content_seq, _NOTHING), jobs.get(row.job, "")) for row in rows}


def _labels_of(row: _Row, said: _Said, job: str) -> Labels:
    variant = said.variant if row.job is None else _variant_in(row.variables)
    return Labels(_text(said.type), _text(said.campaign) or job, _text(variant), _template(said.template))


def _variant_in(variables: bytes | None) -> str | None:
    """Read a bulk recipient's variant: the content is that of all of them."""
    try:
        return None if variables is None else _variables(variables).get(VARIANT)
    except msgspec.MsgspecError:
        return None


def _read(body: bytes) -> _Said:
    try:
        return _said(body)
    except msgspec.MsgspecError:
        return _NOTHING


def _template(used: Any) -> str:
    """Name a template with its version."""
    return f"{used.get('name')}@{used.get('version')}" if isinstance(used, dict) else ""


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


_TAKING: OperationKind[_Page, _Counted] = OperationKind("roll_up", _take, durable=False, patient=True)
_ERASING: Final = OperationKind("erase_user_events", _erase, durable=True)
