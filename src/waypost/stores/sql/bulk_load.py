"""Reading a piece: its recipients with their devices, less those that have their row already.

bulk_piece                     open ones, one job after the other
device / bulk_recipient        the piece's range of user ids
notification                   by the ids that follow, where some rows of the piece are written
user_profile                   the zones of its recipients, of a job with a local time
user_hour                      when they read, of a job with the best time
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter
from typing import Any

import msgspec
from msgspec import Struct

from waypost.domain.best_hour import HABIT_MS, BasedOn, summed
from waypost.domain.best_time import Habits, is_best
from waypost.domain.bulk import Audience, BulkJob, notification_as, recipient_ids, variables_for
from waypost.domain.ids import NotificationId, UserId
from waypost.domain.rollup import EVERYBODY
from waypost.domain.time import Instant, later
from waypost.ports.work import WorkItem
from waypost.stores.sql.analytics import hours_of
from waypost.stores.sql.bulk_rows import FROM_JOB, encoded, job_of
from waypost.stores.sql.bulk_walk import asked_by, matching
from waypost.stores.sql.devices import DEVICE, device_of
from waypost.stores.sql.driver import Connection, Row
from waypost.stores.sql.rows import select_in
from waypost.stores.sql.segment_walk import matching_range

_NOT_OUT = "NOT EXISTS (SELECT 1 FROM opt_out WHERE opt_out.app = ? AND opt_out.user_id = {table}.user_id)"
_FROM_REGISTRY = f"""\
SELECT user_id, NULL, {DEVICE} FROM device
WHERE app = ? AND user_id > ? AND user_id <= ? AND {{matches}} = 1 AND {_NOT_OUT.format(table="device")}
ORDER BY user_id
"""  # noqa: S608 - a list of columns
_FROM_LIST = f"""\
SELECT bulk_recipient.user_id, variables, {DEVICE} FROM bulk_recipient
LEFT JOIN device ON device.app = ? AND device.user_id = bulk_recipient.user_id AND active = 1 AND token_use = ?
WHERE job = ? AND bulk_recipient.user_id > ? AND bulk_recipient.user_id <= ?
AND {_NOT_OUT.format(table="bulk_recipient")}
ORDER BY bulk_recipient.user_id
"""  # noqa: S608 - a list of columns
_ZONES = """\
SELECT user_id, time_zone FROM user_profile WHERE app = ? AND time_zone IS NOT NULL AND user_id IN ({texts})
"""
_FROM_SEGMENT = f"""\
SELECT chosen.user_id, NULL, {DEVICE} FROM ({{table}}) AS chosen
LEFT JOIN device ON device.app = ? AND device.user_id = chosen.user_id AND active = 1 AND token_use = ?
WHERE {_NOT_OUT.format(table="chosen")}
ORDER BY chosen.user_id
"""  # noqa: S608 - a list of columns
_KNOWN = "SELECT id FROM notification WHERE id IN ({keys})"

_OWN = 2
"""The columns of a recipient before those of a device."""

_variables = msgspec.msgpack.Decoder(dict[str, str]).decode
_in_order = attrgetter("platform", "device_id")


Times = Callable[[UserId], tuple[str | None, Habits, Instant]]
"""Tells the zone and the habits of a recipient, and the time by which they count."""


class PieceRow(Struct, frozen=True, array_like=True):
    """A row of ``bulk_piece``."""

    seq: int
    job: int
    n: int
    shard: int
    after: str
    until: str
    written: int


PIECE_COLUMNS = "seq, job, n, shard, after_user, until_user, written"


class Read(Struct, frozen=True):
    """A piece as leased from: the recipients still to be told, and the values of their placeholders."""

    row: PieceRow
    items: tuple[WorkItem, ...]
    variables: dict[NotificationId, bytes]
    due: int
    """The number of rows that the piece has once all of *items* are written."""


def read_job(connection: Connection, number: int) -> BulkJob:
    """Read a job that has pieces."""
    return job_of(connection.execute(f"{FROM_JOB} WHERE number = ?", (number,)).fetchone())


def read_piece(connection: Connection, job: BulkJob, row: PieceRow, now: Instant, *, with_devices: bool) -> Read:
    """Read everyone of *row* without a row yet, by user id; *with_devices* where those are here."""
    audience = list(read_audience(connection, job, row))
    make_id = recipient_ids(job.id, row.n)
    ids = [make_id(each.user_id) for each in audience]
    known = {found[0] for found in select_in(connection, _KNOWN, ids)} if row.written else frozenset[NotificationId]()
    when = times_of(connection, job, [each.user_id for each in audience], now)
    items: list[WorkItem] = []
    variables: dict[NotificationId, bytes] = {}
    for notification_id, each in zip(ids, audience, strict=True):
        if notification_id in known:
            continue
        notification = notification_as(notification_id, job, each.user_id, each.variables, *when(each.user_id))
        items.append(WorkItem(notification, None, each.devices if with_devices else None))
        if each.variables is not None:
            variables[notification_id] = encoded(each.variables)
    return Read(row, tuple(items), variables, row.written + len(items))


def times_of(connection: Connection, job: BulkJob, users: Sequence[UserId], now: Instant) -> Times:
    """Return what tells what the time of each of *users* follows from; nothing is read where the job has none."""
    if job.send_at is None:
        return lambda _: (None, (), now)
    named = msgspec.json.encode(users).decode()
    zones: dict[str, str] = dict(
        connection.execute(_ZONES.format(texts=connection.dialect.texts), (job.app, named)).fetchall()
    )
    if not is_best(job.send_at):
        return lambda user: (zones.get(user), (), now)
    *each, everybody = hours_of(connection, job.app, [*users, EVERYBODY], later(now, -HABIT_MS), now)
    own = dict(zip(users, each, strict=True))
    alike = [] if job.segment is None else [(BasedOn.SEGMENT, summed(each))]  # those of a piece stand for all
    return lambda user: (zones.get(user), [(BasedOn.USER, own[user]), *alike, (BasedOn.APP, everybody)], now)


def read_audience(connection: Connection, job: BulkJob, row: PieceRow) -> Iterator[Audience]:
    """Read the recipients of *row* with the devices that the job is for."""
    rows = _rows(connection, job, row)
    start = 0
    while start < len(rows):
        user_id, end = rows[start][0], start + 1
        while end < len(rows) and rows[end][0] == user_id:
            end += 1
        if job.part is None or job.part.has(user_id):
            yield _audience(job, rows[start:end])
        start = end


def _rows(connection: Connection, job: BulkJob, row: PieceRow) -> list[Row]:
    if job.segment is not None:
        table, asked = matching_range(job.segment, asked_by(job, connection), row.after, row.until)
        users = _FROM_SEGMENT.format(table=table)
        return connection.execute(users, (*asked, job.app, job.token_use, job.app)).fetchall()
    if job.registry is None:
        bound: tuple[Any, ...] = (job.app, job.token_use, row.job, row.after, row.until, job.app)
        return connection.execute(_FROM_LIST, bound).fetchall()
    condition, asked = matching(job.registry, job.token_use)
    sql = _FROM_REGISTRY.format(matches=condition)
    return connection.execute(sql, (job.app, row.after, row.until, *asked, job.app)).fetchall()


def _audience(job: BulkJob, rows: Sequence[Row]) -> Audience:
    """Build a recipient from the rows of their devices, or the one without where they have none."""
    user_id, own = rows[0][:_OWN]
    devices = [device_of(row[_OWN:]) for row in rows if row[_OWN] is not None]
    if len(devices) > 1:
        devices.sort(key=_in_order)
    variables = variables_for(job, {} if own is None else _variables(own), user_id)
    return Audience(user_id, tuple(devices), variables)
