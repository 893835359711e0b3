"""A write transaction, and what it says in the journal and the counters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Generic, TypeVar

import msgspec

from waypost.domain.ids import AppId
from waypost.domain.moves import ActionTaken, Moved
from waypost.domain.notification import Lane
from waypost.domain.status import NotificationStatus
from waypost.domain.time import Instant
from waypost.ports.work import NewNotification
from waypost.stores.sql.driver import Connection
from waypost.stores.sql.engine import Fence

Op = TypeVar("Op")
Result = TypeVar("Result")

_encode = msgspec.msgpack.Encoder().encode

COUNT = (
    "INSERT INTO counter (app, lane, hour, status, delta) VALUES (?, ?, ?, ?, ?)"
    " ON CONFLICT (app, lane, hour, status) DO UPDATE SET delta = counter.delta + excluded.delta"
)
_COUNT_OF_JOB = (
    "INSERT INTO bulk_count (job, status, n) VALUES (?, ?, ?)"
    " ON CONFLICT (job, status) DO UPDATE SET n = bulk_count.n + excluded.n"
)
_JOURNAL = "INSERT INTO journal (at, moves) VALUES (?, ?)"


class Transaction:
    """The transaction of one commit, through which its kinds write; ``BEGIN`` and ``COMMIT`` are not theirs."""

    def __init__(self, connection: Connection, now: Instant, fence: Fence) -> None:
        self.connection = connection
        self.now = now
        """Wall time at the start of the transaction."""
        self._fence = fence
        self.moves: list[Moved] = []
        """The journal row in the making: append to it."""
        self.actions: list[ActionTaken] = []
        """The buttons that were pressed: a row of their own, which versions that do not know them pass over."""
        self._deltas: Counter[tuple[AppId, Lane, str]] = Counter()
        self._of_jobs: Counter[tuple[int, NotificationStatus]] = Counter()

    @cached_property
    def owned(self) -> frozenset[int] | None:
        """The shards of this process, which stay its own until the transaction ends; None where they all do anyway."""
        return self._fence(self.connection)

    def count(self, app: AppId, lane: Lane, status: NotificationStatus, delta: int, job: int | None = None) -> None:
        """Note that *delta* more (or fewer) notifications are in *status*, also among those of bulk job *job*."""
        self._deltas[app, lane, status] += delta
        if job is not None:
            self._of_jobs[job, status] += delta

    def tally(self, app: AppId, lane: Lane, word: str, n: int) -> None:
        """Note *n* more of what the balance counts beside the statuses of notifications."""
        self._deltas[app, lane, word] += n

    def finish(self) -> None:
        """Write the counters, in one order for all, and the journal row; the last statements before ``COMMIT``."""
        part = self.connection.counter_part(self.now)
        rows = [
            (app, lane, part, status, delta) for (app, lane, status), delta in sorted(self._deltas.items()) if delta
        ]
        if rows:
            self.connection.executemany(COUNT, rows)
        of_jobs = [(job, status, delta) for (job, status), delta in sorted(self._of_jobs.items()) if delta]
        if of_jobs:
            self.connection.executemany(_COUNT_OF_JOB, of_jobs)
        if self.moves:
            self.connection.execute(_JOURNAL, (self.now, _encode(self.moves)))
        if self.actions:
            self.connection.execute(_JOURNAL, (self.now, _encode(self.actions)))


AlsoWrite = Callable[[Transaction, Sequence[NewNotification], Sequence[int]], None]
"""What else a transaction writes of the arrivals that are leasable from now on; numbers are of all that it kept."""
WaitsToo = Callable[[Transaction, Sequence[NewNotification]], None]
"""What else a transaction writes of the arrivals that are leasable at a time to come."""


@dataclass(frozen=True, eq=False)
class OperationKind(Generic[Op, Result]):
    """A kind of operation: all of one kind in a commit are run by one call, with one result for each, in order.

    *run* raises for the whole call; the operations are then repeated one by one, so that each fails for itself.
    """

    name: str
    run: Callable[[Transaction, Sequence[Op]], Sequence[Result]]
    durable: bool
    """Whether it is answered only when it would survive a loss of power (where the settings ask for that)."""
    ordered: bool = False
    """Whether it decides by what it finds while nobody else may write: one such transaction at a time in the store."""
    pipelined: bool = False
    """It asks for all that it needs before it looks at any answer, so that a transaction takes few round trips.

    It goes before others in a transaction: a table that it misses is committed by itself (``commit_so_far``).
    """
    patient: bool = False
    """Whether it waits out a busy or full store; others are refused."""
    overtakes: bool = False
    """Whether it may be done before what was there first, since it touches nothing that is there."""
