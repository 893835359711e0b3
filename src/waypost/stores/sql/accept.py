"""Accepting: what one transaction writes for everything that arrived together.

    sequence      one row moved on by the number of new rows: *seq* is commit order (PostgreSQL: blocks, no row)
    notification  one row each, in its slice (history.py); a duplicate's small record too (no content, final at once)
    content       one row each
    dedup_<n>     one row for each key claimed
    counter, journal   one row for each (app, lane, status); one

With one writer at a time ids above the newest stored one are new without a look at the index; the others are looked up.

On PostgreSQL it is three round trips, and waits for nobody but who claims the same key: all questions, all rows with a
statement a table, COMMIT. What was overtaken (a key, an id) is rolled back, decided anew, and then sees who was first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from waypost.domain.balance import Count
from waypost.domain.dedup import Claim, ClaimKind
from waypost.domain.ids import AppId, NotificationId
from waypost.domain.moves import NotificationMoved
from waypost.domain.notification import Lane
from waypost.domain.status import NotificationStatus
from waypost.ports.dedup import Claimed
from waypost.ports.work import Acceptance, Accepted, Conflicting, Duplicate, NewNotification, Replay
from waypost.stores.sql import dedup
from waypost.stores.sql.dedup import Partitions
from waypost.stores.sql.driver import Answer, Row
from waypost.stores.sql.history import NotificationInsert
from waypost.stores.sql.replay import replay
from waypost.stores.sql.rows import content_body, drawn, notification_row
from waypost.stores.sql.transaction import AlsoWrite, OperationKind, Transaction, WaitsToo

_COLUMNS = (
    "seq, status, due_at, finished_at, duplicate_of, id, app, caller, user_id, shard, lane, kind, urgency, guarantee,"
    " created_at, expires_at, ttl_ms, scheduled_at, retry_policy, device_ids, collapses, round"
)
_NEWEST = "SELECT id FROM notification ORDER BY id DESC LIMIT 1"
_KNOWN = "SELECT id, duplicate_of FROM notification WHERE id IN ({keys})"
_INSERT = NotificationInsert(_COLUMNS, f"{'?, ' * 21}1", id_at=5)
_INSERT_PLAIN = NotificationInsert(
    _COLUMNS, f"?, 'pending', 0, NULL, NULL, {'?, ' * 12}NULL, NULL, NULL, NULL, 1", id_at=1
)
"""The insert of most: what goes out now, to all devices, by its app's policy, and replaces nothing; it binds less."""
_PLAIN_WIDTH = 12
_WITHOUT_REST = (None, None, None, None)

Batch = Sequence[NewNotification | Replay]


def accept_kind(
    partition_h: int, also: AlsoWrite | None = None, waits: WaitsToo | None = None
) -> OperationKind[Batch, list[Acceptance]]:
    """Build the operation; *partition_h* is how many hours of keys share a table."""
    partitions = Partitions(partition_h)

    def run(transaction: Transaction, ops: Sequence[Batch]) -> list[list[Acceptance]]:
        asked = [item for op in ops for item in op if isinstance(item, NewNotification)]
        arrivals = Arrivals(transaction, asked, partitions)
        answers = [[_answer(arrivals, transaction, item) for item in op] for op in ops]
        numbers = arrivals.write()
        arrivals.count_requests(asked)
        if also is not None and (fresh := arrivals.fresh()):
            also(transaction, fresh, numbers)
        if waits is not None:
            waits(transaction, arrivals.scheduled())
        return answers

    return OperationKind("accept", run, durable=True, pipelined=True, overtakes=True)


def _answer(arrivals: Arrivals, transaction: Transaction, item: NewNotification | Replay) -> Acceptance:
    return arrivals.take(item) if isinstance(item, NewNotification) else replay(transaction, item)


class Arrivals:
    """The arrivals of a transaction: what they meet, and what they leave to be written."""

    def __init__(
        self,
        transaction: Transaction,
        arrivals: Sequence[NewNotification],
        partitions: Partitions,
        shards_after: int = 0,
    ) -> None:
        self._transaction = transaction
        self._partitions = partitions
        self._shards_after = shards_after
        """The number that is added to their shards: those rows are nobody's to lease."""
        known = self._ask_for([arrival.notification.id for arrival in arrivals])
        claims = [claim for arrival in arrivals for claim in arrival.claims]
        claimed = dedup.LookUp(transaction.connection, claims, transaction.now, partitions)
        self._numbers = drawn(transaction.connection, len(arrivals))
        self._known: dict[NotificationId, NotificationId | None] = dict(known())
        self._claimed = claimed.answer()
        if claimed.ended_badly:
            self._reopen({claim.key for claim in claims if claim.kind is ClaimKind.CONTENT} & claimed.ended_badly)
        self._rows: list[tuple[NotificationStatus, int | None, int | None, NotificationId | None, NewNotification]] = []
        self._claims: list[tuple[Claim, NotificationId]] = []
        self._unkept: Counter[tuple[AppId, Lane, Count]] = Counter()
        """How many left no row of their own, by why not."""

    def _ask_for(self, ids: Sequence[NotificationId]) -> Answer:
        """Ask which of *ids* are known, and whose duplicates they are."""
        connection = self._transaction.connection
        if not connection.dialect.has_other_writers:
            newest: bytes = next(iter(connection.execute(_NEWEST).fetchall()), (b"",))[0]
            ids = [one for one in ids if one <= newest]
        return connection.ask(_KNOWN, ids)

    def _reopen(self, keys: set[bytes]) -> None:
        """End the windows of *keys*, whose first notification ended badly: who says it again means it."""
        over = {key: self._claimed.pop(key).first_id for key in keys}
        dedup.end(self._transaction.connection, over, self._partitions)

    def take(self, arrival: NewNotification) -> Acceptance:
        """Answer one arrival, seeing what those before it claimed."""
        notification = arrival.notification
        if notification.id in self._known:
            first_id = self._known[notification.id]
            self._unkept[notification.app, notification.lane, Count.REPEATED] += 1
            return Accepted(notification.id, new=False) if first_id is None else Duplicate(first_id, notification.id)
        for claim in sorted(arrival.claims, key=_content_last) if len(arrival.claims) > 1 else arrival.claims:
            claimed = self._claimed.get(claim.key)
            if claimed is not None:
                return self._said_before(arrival, claim, claimed)
        self._keep(arrival, None)
        self._claim(arrival.claims, notification.id)
        return Accepted(notification.id)

    def _said_before(self, arrival: NewNotification, claim: Claim, claimed: Claimed) -> Acceptance:
        if claim.kind is ClaimKind.CONTENT:
            self._keep(arrival, claimed.first_id)
            self._claim([each for each in arrival.claims if each is not claim], claimed.first_id)
            return Duplicate(claimed.first_id, arrival.notification.id)
        is_repeat = claimed.body_hash == claim.body_hash
        why = Count.REPEATED if is_repeat else Count.CONFLICTING
        self._unkept[arrival.notification.app, arrival.notification.lane, why] += 1
        return Duplicate(claimed.first_id) if is_repeat else Conflicting(claimed.first_id)

    def _claim(self, claims: Sequence[Claim], first_id: NotificationId) -> None:
        """Let *claims* stand for *first_id* from now on."""
        for claim in claims:
            if claim.until > self._transaction.now:
                self._claimed[claim.key] = Claimed(first_id, claim.body_hash)
                self._claims.append((claim, first_id))

    def _keep(self, arrival: NewNotification, duplicate_of: NotificationId | None) -> None:
        """Keep a new row, the counter's change and the journal's move, to be written."""
        notification = arrival.notification
        at = notification.created_at
        self._known[notification.id] = duplicate_of
        if duplicate_of is None:
            status = NotificationStatus.PENDING
            self._rows.append((status, notification.scheduled_at or 0, None, None, arrival))
        else:
            status = NotificationStatus.DEDUPLICATED
            self._rows.append((status, None, at, duplicate_of, arrival))
        self._transaction.count(notification.app, notification.lane, status, 1)
        move = NotificationMoved(notification.app, notification.id, notification.user_id, None, status, at)
        self._transaction.moves.append(move)

    def fresh(self) -> list[NewNotification]:
        """Return those of what was kept that are leasable now."""
        return [arrival for _, due_at, _, _, arrival in self._rows if due_at == 0]

    def scheduled(self) -> list[NewNotification]:
        """Return those of what was kept that are leasable at a time to come."""
        return [arrival for _, due_at, _, _, arrival in self._rows if due_at]

    def count_requests(self, asked: Sequence[NewNotification]) -> None:
        """Count what was *asked* for, whatever the answer, and what of it is not kept."""
        for (app, lane), n in Counter([(each.notification.app, each.notification.lane) for each in asked]).items():
            self._transaction.tally(app, lane, Count.REQUESTS, n)
        for (app, lane, why), n in self._unkept.items():
            self._transaction.tally(app, lane, why, n)

    def kept(self) -> list[NewNotification]:
        """Return what is stored for the first time."""
        return [arrival for *_, arrival in self._rows]

    def write(self) -> Sequence[int]:
        """Write all that was kept; return its numbers."""
        if not self._rows:
            return ()
        self._count_accepted()
        connection = self._transaction.connection
        notifications: list[Row] = []
        plain: list[Row] = []
        contents: list[Row] = []
        numbers = self._numbers(len(self._rows))
        for seq, (status, *fields, duplicate_of, arrival) in zip(numbers, self._rows, strict=True):
            row = notification_row(arrival.notification, self._shards_after)
            if duplicate_of is None and row[_PLAIN_WIDTH:] == _WITHOUT_REST:
                plain.append((seq, *row[:_PLAIN_WIDTH]))
            else:
                notifications.append((seq, status, *fields, duplicate_of, *row))
            if duplicate_of is None:
                contents.append((seq, content_body(arrival.notification.content)))
        _INSERT_PLAIN.write(connection, plain)
        _INSERT.write(connection, notifications)
        connection.insert_all("INSERT INTO content (seq, body) VALUES ", "(?, ?)", contents)
        dedup.claim(self._transaction, self._claims, self._partitions)
        return numbers

    def _count_accepted(self) -> None:
        notifications = [arrival.notification for *_, duplicate_of, arrival in self._rows if duplicate_of is None]
        for (app, lane), n in Counter([(each.app, each.lane) for each in notifications]).items():
            self._transaction.tally(app, lane, Count.ACCEPTED, n)


def _content_last(claim: Claim) -> bool:
    return claim.kind is ClaimKind.CONTENT
