"""Analytics on SQL: sums of what the roll-up counted (rollup.py)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

import msgspec

from waypost.domain.best_hour import HOURS, Hours
from waypost.domain.buckets import Bucket, Span, size_of, spans_of, start_of
from waypost.domain.ids import AppId, UserId
from waypost.domain.rollup import EVERYBODY, MONTH_MS
from waypost.domain.time import Instant
from waypost.domain.tracked import SLOT_MS, NotificationEvent
from waypost.ports.analytics import LABELS, Count, CountQuery, EventCount, EventQuery
from waypost.ports.clock import Clock
from waypost.stores.sql.database import Database
from waypost.stores.sql.driver import Connection, Row

_BUCKET: Final = "(slot + ?) / ?"
_COUNTS: Final = """\
SELECT {columns}, sum(deliveries), sum(notifications) FROM rollup
WHERE app = ? AND slot >= ? AND slot < ?{filters} GROUP BY {places}
"""
_EVENTS: Final = """\
SELECT {columns}, sum(count) FROM event_slot WHERE app = ? AND name >= ? AND name <= ? AND slot >= ? AND slot < ?
GROUP BY {places}
"""
_HOURS: Final = """\
SELECT user_id, hour, sent, opened FROM user_hour WHERE app = ? AND month = ? AND user_id IN ({texts})
"""
_LAST_NAME: Final = "\U0010ffff"


class SqlAnalytics:
    """See ports.analytics.Analytics."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def counts(self, query: CountQuery) -> list[Count]:
        """See Analytics."""
        return await self._database.read(lambda connection: _counts(connection, query))

    async def events(self, query: EventQuery) -> list[EventCount]:
        """See Analytics."""
        return await self._database.read(lambda connection: _events(connection, query))

    async def hours(self, app: AppId, users: Sequence[UserId] | None, since: Instant) -> list[Hours]:
        """See Analytics."""
        asked = (EVERYBODY,) if users is None else users
        return await self._database.read(lambda connection: hours_of(connection, app, asked, since, self._clock.now()))


def _spans(query: CountQuery | EventQuery) -> list[Span]:
    if query.bucket is None:
        return [Span(query.since // SLOT_MS, -(-query.until // SLOT_MS), 0)]
    return spans_of(query.zone, query.bucket, query.since, query.until)


def _counts(connection: Connection, query: CountQuery) -> list[Count]:
    names = [name for name in LABELS if name in query.filters]
    label = "''" if query.by is None else LABELS[LABELS.index(query.by)]
    filters = "".join(f" AND {name} = ?" for name in names)
    bound = [query.filters[name] for name in names]
    sums: dict[tuple[str, Instant | None, str], list[int]] = {}
    for span in _spans(query):
        columns, places, shifted = _columns((label, "event"), query.bucket, span)
        sql = _COUNTS.format(columns=columns, places=places, filters=filters)
        for row in connection.execute(sql, (*shifted, query.app, span.since, span.until, *bound)).fetchall():
            value, event, start, *added = _row(row, query, span)
            found = sums.setdefault((value, start, event), [0, 0])
            found[:] = [found[0] + int(added[0]), found[1] + int(added[1])]
    return [
        Count(None if query.by is None else value, start, NotificationEvent(event), *both)
        for (value, start, event), both in sums.items()
    ]


def _events(connection: Connection, query: EventQuery) -> list[EventCount]:
    names = ("", _LAST_NAME) if query.name is None else (query.name, query.name)
    sums: Counter[tuple[str, Instant | None]] = Counter()
    for span in _spans(query):
        columns, places, shifted = _columns(("name",), query.bucket, span)
        bound = (*shifted, query.app, *names, span.since, span.until)
        for row in connection.execute(_EVENTS.format(columns=columns, places=places), bound).fetchall():
            name, start, count = _row(row, query, span)
            sums[name, start] += int(count)
    return [EventCount(*key, count) for key, count in sums.items()]


def _columns(names: tuple[str, ...], bucket: Bucket | None, span: Span) -> tuple[str, str, tuple[int, ...]]:
    """Name the columns to group by and their places, and what they bind."""
    columns = names if bucket is None else (*names, _BUCKET)
    shifted = () if bucket is None else (span.shift, size_of(bucket))
    return ", ".join(columns), ", ".join(str(n) for n in range(1, len(columns) + 1)), shifted


def _row(row: Row, query: CountQuery | EventQuery, span: Span) -> Row:
    """Put the beginning of its bucket into a row, behind its names."""
    at = 2 if isinstance(query, CountQuery) else 1
    if query.bucket is None:
        return (*row[:at], None, *row[at:])
    return (*row[:at], start_of(query.zone, query.bucket, row[at], span.shift), *row[at + 1 :])


def hours_of(connection: Connection, app: AppId, users: Sequence[UserId], since: Instant, now: Instant) -> list[Hours]:
    """Return when each of *users* was sent to and opened, by hour of the day in UTC; EVERYBODY is all of the app."""
    sent: dict[str, list[int]] = {user: [0] * HOURS for user in users}
    opened: dict[str, list[int]] = {user: [0] * HOURS for user in users}
    sql, named = _HOURS.format(texts=connection.dialect.texts), msgspec.json.encode(users).decode()
    for month in range(since // MONTH_MS, now // MONTH_MS + 1):
        for user, hour, of_sent, of_opened in connection.execute(sql, (app, month, named)).fetchall():
            sent[user][hour] += of_sent
            opened[user][hour] += of_opened
    return [Hours(tuple(sent[user]), tuple(opened[user])) for user in users]
