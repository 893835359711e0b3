"""The relay: entries of the outbox go to their topics, those added first before the others.

    outbox   UPDATE: claimed (by a member, once), then published, or unclaimed where the broker did not take them

What a member that is gone had claimed is claimed by another, and published again if it was.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter

from msgspec import Struct

from waypost.domain.channel import Channel
from waypost.domain.content import Content
from waypost.domain.ids import AppId, NotificationId, UserId
from waypost.domain.notification import Lane
from waypost.domain.time import Instant
from waypost.stores.sql.reached import reach, reached
from waypost.stores.sql.rows import content_of, execute_in
from waypost.stores.sql.transaction import OperationKind, Transaction

CHANNELS = (
    "(SELECT kind FROM notification WHERE id = notification_id),"
    " (SELECT channel FROM receipt WHERE receipt.notification_id = outbox.notification_id AND receipt.n = outbox.n),"
    " coalesce("
    "(SELECT retries FROM receipt WHERE receipt.notification_id = outbox.notification_id AND receipt.n = outbox.n), 0),"
    " (SELECT body FROM content WHERE n = -1 AND content.seq ="
    " (SELECT coalesce(job, notification.seq) FROM notification WHERE id = notification_id))"
)
"""What says which channels an entry is for: of a target its receipt, of what is not routed its content."""
_CLAIM = (
    "UPDATE outbox SET claimed_by = ?, claimed_at = ? WHERE seq = ANY(ARRAY("
    "SELECT seq FROM outbox WHERE published_at IS NULL AND seq > ?"
    " AND (claimed_by IS NULL OR claimed_by NOT IN (SELECT id FROM member))"
    " ORDER BY seq LIMIT ? FOR UPDATE SKIP LOCKED)) RETURNING seq, notification_id, n, app, lane, due_at,"
    " (SELECT user_id FROM notification WHERE id = notification_id)"
)
_PUBLISHED = "UPDATE outbox SET published_at = ? WHERE seq IN ({keys})"
_UNCLAIMED = "UPDATE outbox SET claimed_by = NULL, claimed_at = NULL WHERE seq IN ({keys}) AND published_at IS NULL"
_OVER = (
    "DELETE FROM outbox WHERE seq = ANY(ARRAY(SELECT seq FROM outbox WHERE seq > ? AND published_at < ?"
    " ORDER BY seq LIMIT ? FOR UPDATE SKIP LOCKED)) RETURNING seq"
)
_FIRST = "SELECT min(seq) FROM outbox WHERE seq > ?"
_TIDIED = "outbox dropped"
"""The name of the place up to which no entry is left: lower numbers were in transactions that are long over."""


class Claim(Struct, frozen=True):
    """A request of *member* to publish at most *n* entries *after* that one."""

    member: int
    n: int
    after: int = 0
    with_channels: bool = False
    """Whether what says which channels they are for is read as well."""


class Claimed(Struct, frozen=True):
    """An entry to be published."""

    seq: int
    notification_id: NotificationId
    n: int
    app: AppId
    lane: Lane
    due_at: Instant | None
    """The time until which it waits; None where it may be sent now."""
    user_id: UserId
    """The user; empty where it was not asked for."""
    kind: str = ""
    channel: Channel | None = None
    """The channel of a target."""
    retries: int = 0
    """How many retries of a target were made, or wait with it."""
    content: Content | None = None
    """The content of what is not routed yet."""


class Over(Struct, frozen=True):
    """A request to delete at most *n* entries that were published before *before*."""

    before: Instant
    n: int


def _claim(transaction: Transaction, ops: Sequence[Claim]) -> list[list[Claimed]]:
    return [_claimed(transaction, claim) for claim in ops]


def _claimed(transaction: Transaction, claim: Claim) -> list[Claimed]:
    sql = f"{_CLAIM}, {CHANNELS}" if claim.with_channels else _CLAIM
    rows = transaction.connection.execute(sql, (claim.member, transaction.now, claim.after, claim.n)).fetchall()
    return [claimed_of(*row) for row in sorted(rows, key=itemgetter(0))]


def claimed_of(  # noqa: PLR0913, PLR0917 - the columns of a row
    seq: int,
    notification_id: NotificationId,
    n: int,
    app: AppId,
    lane: str,
    due_at: Instant | None,
    user_id: UserId,
    kind: str = "",
    channel: Channel | None = None,
    retries: int = 0,
    body: bytes | None = None,
) -> Claimed:
    """Read an entry from its columns, and from CHANNELS where those were asked for."""
    content = None if body is None else content_of(body)
    return Claimed(seq, notification_id, n, app, Lane(lane), due_at, user_id, kind, channel, retries, content)


def _mark(transaction: Transaction, ops: Sequence[Sequence[int]]) -> list[None]:
    for sql, chunk in transaction.connection.lists(_PUBLISHED, [seq for op in ops for seq in op]):
        transaction.connection.execute(sql, (transaction.now, *chunk))
    return [None] * len(ops)


def _unclaim(transaction: Transaction, ops: Sequence[Sequence[int]]) -> list[None]:
    execute_in(transaction.connection, _UNCLAIMED, [seq for op in ops for seq in op])
    return [None] * len(ops)


def _drop(transaction: Transaction, ops: Sequence[Over]) -> list[int]:
    return [_drop_page(transaction, over) for over in ops]


def _drop_page(transaction: Transaction, over: Over) -> int:
    connection = transaction.connection
    after = reached(connection, _TIDIED)
    gone = [row[0] for row in connection.execute(_OVER, (after, over.before, over.n)).fetchall()]
    if gone:
        (first,) = connection.execute(_FIRST, (after,)).fetchone()
        reach(connection, _TIDIED, max(gone) if first is None else first - 1)
    return len(gone)


CLAIM: OperationKind[Claim, list[Claimed]] = OperationKind("claim", _claim, durable=False)
MARK: OperationKind[Sequence[int], None] = OperationKind("published", _mark, durable=False)
UNCLAIM: OperationKind[Sequence[int], None] = OperationKind("unclaim", _unclaim, durable=False)
DROP: OperationKind[Over, int] = OperationKind("outbox retention", _drop, durable=False)
