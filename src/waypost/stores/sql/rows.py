"""Rows as the domain's values, and back; the columns are explained in schema.py."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from typing import Any, TypeVar

import msgspec

from waypost.domain.content import UNREADABLE, Content, Kind, Urgency
from waypost.domain.delivery import Attempt, FailureClass, Receipt
from waypost.domain.ids import DeviceId, shard_of
from waypost.domain.notification import Guarantee, Lane, Notification
from waypost.domain.personal import personalised
from waypost.domain.status import DeliveryStatus, NotificationStatus
from waypost.domain.waits import Wait
from waypost.stores.sql.driver import Connection, Row

T = TypeVar("T")

NOTIFICATION = (
    "notification.id, app, caller, user_id, body, created_at, expires_at, ttl_ms, lane, kind, urgency, guarantee,"
    " device_ids, scheduled_at, retry_policy, variables"
)
"""The columns that ``notification_of`` reads, of WITH_CONTENT."""
NOTIFICATION_WIDTH = 16
WITH_CONTENT = "notification LEFT JOIN content ON content.seq = coalesce(notification.job, notification.seq)"
"""A notification's own content, or that of its bulk job."""

RECEIPT = (
    "notification_id, n, device_id, channel, status, attempt, retries, throttles, due_at, parked, provider_id, code,"
    " failure_class, reason, dead, first_attempt_at, last_attempt_at, sent_at, resolved_at, attempts, waits"
)
"""The columns that ``receipt_of`` reads and, followed by app, shard and lane, ``receipt_row`` writes."""
RECEIPT_WIDTH = 21

RECEIPT_VALUES = f"({','.join('?' * (RECEIPT_WIDTH + 3))})"
INSERT_RECEIPT = f"INSERT INTO receipt ({RECEIPT}, app, shard, lane) VALUES "  # noqa: S608 - columns
REPLACE_RECEIPT = INSERT_RECEIPT.replace("INSERT", "INSERT OR REPLACE", 1)

LANES = {word.value: word for word in Lane}
_KINDS = {word.value: word for word in Kind}
_URGENCIES = {word.value: word for word in Urgency}
_GUARANTEES = {word.value: word for word in Guarantee}
_FAILURES = {None: None} | {word.value: word for word in FailureClass}
_DEFAULTS: Sequence[tuple[Mapping[str, str], str]] = (
    (LANES, Lane.NORMAL),
    (_KINDS, Kind.VISIBLE),
    (_URGENCIES, Urgency.NORMAL),
    (_GUARANTEES, Guarantee.AT_MOST_ONCE),
)
"""What stands in for a word of a newer version, where nothing is sent."""
_UNKNOWN_CONTENT = b""
"""Content that nobody can decode."""
NOTIFICATION_STATUSES = {word.value: word for word in NotificationStatus}
_DELIVERY_STATUSES = {word.value: word for word in DeliveryStatus}

_ROWS_AT_ONCE = (64, 8, 1)
"""The rows of one statement: of few sizes, so that few statements serve all."""

_encode = msgspec.msgpack.Encoder().encode
_content = msgspec.msgpack.Decoder(Content).decode
_attempts = msgspec.msgpack.Decoder(tuple[Attempt, ...]).decode
_wait = msgspec.msgpack.Decoder(Wait).decode
_device_ids = msgspec.json.Decoder(tuple[DeviceId, ...]).decode
_variables = msgspec.msgpack.Decoder(dict[str, str]).decode
_NO_CONTENT = Content()


def notification_of(row: Row) -> Notification:
    """Read the notification in the first columns of *row*; a duplicate's record has no content.

    A word that only a newer version knows makes it unreadable: one row must not stop those beside it.
    """
    try:
        return _notification_of(row)
    except KeyError:
        known = (words.get(word, default) for (words, default), word in zip(_DEFAULTS, row[8:12], strict=True))
        return _notification_of((*row[:4], _UNKNOWN_CONTENT, *row[5:8], *known, *row[12:]))


def _notification_of(row: Row) -> Notification:
    body, device_ids = row[4], row[12]
    return Notification(
        row[0],
        row[1],
        row[2],
        row[3],
        _NO_CONTENT if body is None else content_of(body, row[15]),
        row[5],
        row[6],
        row[7],
        LANES[row[8]],
        _KINDS[row[9]],
        _URGENCIES[row[10]],
        _GUARANTEES[row[11]],
        () if device_ids is None else _device_ids(device_ids),
        row[13],
        row[14],
    )


def content_of(body: bytes, variables: bytes | None = None) -> Content:
    """Decode content; one row that cannot be read must not stop those beside it."""
    try:
        content = _content(body)
        return content if variables is None else personalised(content, _variables(variables))
    except msgspec.MsgspecError:
        return UNREADABLE


def notification_row(notification: Notification, shards_after: int = 0) -> Row:
    """Build ``id, app, caller, user_id, shard, lane, kind, urgency, guarantee, created_at, expires_at, ttl_ms, ...``.

    Then ``scheduled_at, retry_policy, device_ids, collapses``.
    """
    return (
        notification.id,
        notification.app,
        notification.caller,
        notification.user_id,
        shards_after + shard_of(notification.app, notification.user_id),
        notification.lane._value_,  # SQLite takes plain text at once, an enum only after a search
        notification.kind._value_,
        notification.urgency._value_,
        notification.guarantee._value_,
        notification.created_at,
        notification.expires_at,
        notification.ttl_ms,
        notification.scheduled_at,
        notification.retry_policy,
        msgspec.json.encode(notification.device_ids).decode() if notification.device_ids else None,
        None if notification.content.collapse_key is None else 1,
    )


def content_body(content: Content) -> bytes:
    """Encode content as stored."""
    return _encode(content)


def status_of(word: str) -> NotificationStatus:
    """Read the status of a notification; a newer version's says nothing here."""
    return NOTIFICATION_STATUSES.get(word, NotificationStatus.UNKNOWN)


def receipt_of(row: Row) -> Receipt:
    """Read the receipt in the first columns of *row*; one row of a newer version must not stop those beside it."""
    try:
        return _receipt_of(row)
    except (KeyError, msgspec.MsgspecError):
        known = _receipt_of((*row[:4], DeliveryStatus.UNKNOWN.value, *row[5:19], None, None))
        return msgspec.structs.replace(known, is_newer=True)


def _receipt_of(row: Row) -> Receipt:
    return Receipt(
        row[0],
        row[1],
        row[2],
        row[3],
        _DELIVERY_STATUSES[row[4]],
        row[5],
        row[6],
        row[7],
        row[8],
        row[9],
        row[10],
        row[11],
        _FAILURES.get(row[12]),
        row[13],
        bool(row[14]),
        row[15],
        row[16],
        row[17],
        row[18],
        () if row[19] is None else _attempts(row[19]),
        None if row[20] is None else _wait(row[20]),
    )


def receipt_row(receipt: Receipt, app: str, shard: int, lane: Lane) -> Row:
    """Build the whole row of a receipt: RECEIPT, app, shard, lane."""
    return (
        receipt.notification_id,
        receipt.n,
        receipt.device_id,
        receipt.channel,
        receipt.status,
        receipt.attempt,
        receipt.retries,
        receipt.throttles,
        receipt.due_at,
        receipt.parked,
        receipt.provider_id,
        receipt.code,
        receipt.failure_class,
        receipt.reason,
        int(receipt.dead),
        receipt.first_attempt_at,
        receipt.last_attempt_at,
        receipt.sent_at,
        receipt.resolved_at,
        _encode(receipt.attempts) if receipt.attempts else None,
        None if receipt.waits is None else _encode(receipt.waits),
        app,
        shard,
        lane,
    )


REPORTED = ("status", "sent_at", "resolved_at", "code", "reason", "failure_class")
"""The columns of a receipt that a report of its provider or its device changes."""

RECEIPT_KEY = ("notification_id", "n")


def reported_row(receipt: Receipt) -> Row:
    """Build the change of a receipt that was reported of: REPORTED, RECEIPT_KEY."""
    status, failed = receipt.status, receipt.failure_class
    told = (status, receipt.sent_at, receipt.resolved_at, receipt.code, receipt.reason, failed)
    return (*told, receipt.notification_id, receipt.n)


def drawn(connection: Connection, most: int) -> Callable[[int], Sequence[int]]:
    """Draw numbers for at most *most* rows now, to be given in order once it is known how many are needed."""
    sql, size = connection.dialect.next_numbers, connection.dialect.numbers_a_block
    if size:
        blocks = connection.execute(sql, (-(-most // size),))
        return lambda count: [at for (first,) in sorted(blocks.fetchall()) for at in range(first, first + size)][:count]

    def exactly(count: int) -> range:
        last: int = connection.execute(sql, (count,)).fetchone()[0]
        return range(last - count + 1, last + 1)

    return exactly


def seqs(connection: Connection, count: int) -> Sequence[int]:
    """Draw *count* new numbers of notifications."""
    return drawn(connection, count)(count)


def readable(decode: Callable[[bytes], T], rows: Sequence[Row]) -> list[T]:
    """Decode the first column of *rows*, without those that say what only a newer version knows: they are its own."""
    found: list[T] = []
    for row in rows:
        with suppress(msgspec.ValidationError):
            found.append(decode(row[0]))
    return found


def select_in(connection: Connection, sql: str, keys: Sequence[Any]) -> Iterator[Row]:
    """Select rows of *sql*, whose ``{keys}`` stands for a list of keys, for any number of *keys*."""
    for statement, chunk in connection.lists(sql, keys):
        yield from connection.execute(statement, chunk).fetchall()


def execute_in(connection: Connection, sql: str, keys: Sequence[Any], *before: Any) -> None:
    """Execute a statement without an answer for any number of *keys*, as select_in does; *before* are bound first."""
    for statement, chunk in connection.lists(sql, keys):
        connection.execute(statement, (*before, *chunk))


def upsert_all(connection: Connection, insert: str, values: str, end: str, rows: Sequence[Row]) -> list[Row]:
    """Insert *rows*, many at once, each statement with *end*; return what those statements return."""
    answers: list[Row] = []
    start = 0
    for count in _ROWS_AT_ONCE:
        sql = insert + ",".join([values] * count) + end
        while len(rows) - start >= count:
            bound = list(chain.from_iterable(rows[start : start + count]))
            cursor = connection.execute(sql, bound)
            answers += cursor.fetchall() if "RETURNING" in end else ()
            start += count
    return answers
