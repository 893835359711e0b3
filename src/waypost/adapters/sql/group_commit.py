"""Group commit: one writer thread per process turns everything queued into one transaction at a time."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from waypost.adapters.sql.checkpoint import Checkpoint
from waypost.adapters.sql.faults import Fault, fault_of, refusal
from waypost.adapters.sql.reserve import Reserve
from waypost.adapters.sql.settings import Durability, SqlSettings
from waypost.adapters.sql.state import EVENT_OF, StoreState
from waypost.adapters.sql.transaction import Kind, Op, Result, Transaction
from waypost.adapters.sql.write_lock import LockTimeout, WriteLock
from waypost.domain.errors import ErrorCode, Unavailable
from waypost.ports.clock import Clock
from waypost.telemetry.metrics import Metric
from waypost.telemetry.sink import Telemetry

if TYPE_CHECKING:
    from sqlite3 import Connection

_RETRY_PAUSE_S = 0.25
"""How long patient operations wait before the store is tried again."""


@dataclass(slots=True, eq=False)
class _Queued:
    """An operation that waits for its commit."""

    kind: Kind[Any, Any]
    op: Any
    rows: int
    future: asyncio.Future[Any]
    since: float = field(default_factory=time.monotonic)


_ACCEPTS_FOR_A_SETTLE = 4
"""What a row costs that is settled, in rows that are accepted."""

_Answer = tuple[asyncio.Future[Any], Any]
"""A future and its result; an exception is raised there."""


class GroupCommit:
    """Queues operations from the event loop and answers them after their commit, waking the loop once for each.

    A busy store (the write lock is taken for longer than the timeout) refuses what is not patient with
    ``Unavailable``; a full one with ``StorageFull``, dropping the reserve so that patient operations still fit; a
    damaged one refuses everything with ``StorageBroken``.
    """

    def __init__(
        self,
        connection: Connection,
        lock: WriteLock,
        reserve: Reserve,
        settings: SqlSettings,
        *,
        clock: Clock,
        telemetry: Telemetry,
    ) -> None:
        self._connection = connection
        self._lock = lock
        self._reserve = reserve
        self._settings = settings
        self._clock = clock
        self._telemetry = telemetry
        self._checkpoint = Checkpoint(connection, settings.checkpoint_bytes)
        self._loop = asyncio.get_running_loop()
        self._wake = threading.Condition()
        self._queue: deque[_Queued] = deque()
        self._answers: list[_Answer] = []
        self._returned: list[_Queued] = []
        self._listeners: list[Callable[[StoreState], None]] = []
        self._synchronous: str | None = None
        self._overtaking = False
        """The last commit was of what overtakes."""
        self._held = 0
        self._seconds = 0.0
        self._operations = 0
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="waypost-writer", daemon=True)
        self.state = StoreState.OK if reserve.keep() else StoreState.FULL

    def start(self) -> None:
        """Begin to write."""
        self._thread.start()

    async def stop(self) -> None:
        """Write what is queued, then end; what cannot be written is refused."""
        with self._wake:
            self._stopping = True
            self._wake.notify()
        if self._thread.ident is not None:
            await asyncio.to_thread(self._thread.join)

    def submit(self, kind: Kind[Op, Result], op: Op, rows: int = 1) -> asyncio.Future[Result]:
        """Queue *op*; *rows* is its size. Shield the future where the caller may be cancelled."""
        future: asyncio.Future[Result] = self._loop.create_future()
        with self._wake:
            if self._stopping:
                raise Unavailable("the store is closing", ErrorCode.SHUTTING_DOWN)
            self._queue.append(_Queued(kind, op, rows, future))
            self._wake.notify()
        if kind.patient:
            self._held += 1
            future.add_done_callback(self._no_longer_held)
        return future

    def on_state_change(self, listener: Callable[[StoreState], None]) -> None:
        """Call *listener* on the event loop whenever ``state`` has changed."""
        self._listeners.append(listener)

    @property
    def held(self) -> int:
        """Patient operations that are not written yet."""
        return self._held

    def report_broken(self) -> None:
        """A reader found the database damaged."""
        self._enter(StoreState.BROKEN)

    # What follows runs in the writer thread.

    def _run(self) -> None:
        while self._wait_for_work():
            started = time.monotonic()
            self._operations = 0
            if self.state is StoreState.BROKEN:
                self._refuse(self._take(), Fault.BROKEN)
            else:
                self._round(started)
            self._seconds = time.monotonic() - started
            self._deliver()

    def _wait_for_work(self) -> bool:
        """Wait until there is something to do; False is the end."""
        with self._wake:
            if self._returned:
                self._queue.extendleft(reversed(self._returned))
                self._returned.clear()
                self._wake.wait_for(lambda: self._stopping, _RETRY_PAUSE_S)
            while not self._queue:
                if self._stopping:
                    return False
                self._wake.wait(_RETRY_PAUSE_S if self.state is StoreState.FULL else None)
                if self.state is StoreState.FULL:
                    return True
            return True

    def _round(self, started: float) -> None:
        """One turn under the write lock."""
        try:
            with self._lock.hold(self._patience_s(started)):
                self._recover()
                batch = self._take()
                self._operations = len(batch)
                if batch:
                    self._write(batch)
                self._checkpoint.run_if_due()
        except LockTimeout:
            self._refuse_late()
        except Exception as error:  # noqa: BLE001 - whatever the disk raised: the operations wait, the thread lives on
            self._note(self._fault_of(error))
            self._refuse_late()
            time.sleep(_RETRY_PAUSE_S)  # nothing tells when a disk answers again

    def _patience_s(self, now: float) -> float:
        with self._wake:
            oldest = min((queued.since for queued in self._queue if not queued.kind.patient), default=now)
        return max(0.0, oldest + self._settings.lock_timeout_s - now)

    def _recover(self) -> None:
        if self.state is StoreState.FULL and self._reserve.keep():
            self._enter(StoreState.OK)

    def _take(self) -> list[_Queued]:
        """What goes into the next commit; while the disk is full that is what is patient, the rest is refused."""
        with self._wake:
            batch = self._first_in_line()
        if self.state is not StoreState.FULL:
            return batch
        self._refuse((queued for queued in batch if not queued.kind.patient), Fault.FULL)
        return [queued for queued in batch if queued.kind.patient]

    def _first_in_line(self) -> list[_Queued]:
        """What is accepted has a commit of its own and the first turn, since a caller waits; the rest has the next."""
        waiting = {queued.kind.overtakes for queued in self._queue}
        self._overtaking = True in waiting and not (self._overtaking and False in waiting)
        most = self._settings.commit_rows * (_ACCEPTS_FOR_A_SETTLE if self._overtaking else 1)
        batch: list[_Queued] = []
        left: deque[_Queued] = deque()
        rows = 0
        for queued in self._queue:
            if rows < most and queued.kind.overtakes is self._overtaking:
                rows += queued.rows
                batch.append(queued)
            else:
                left.append(queued)
        self._queue = left
        return batch

    def _write(self, batch: Sequence[_Queued]) -> None:
        try:
            answers = self._transact(batch)
        except Exception as error:  # noqa: BLE001 - what an operation raises belongs to whoever submitted it
            self._failed(batch, error)
        else:
            self._answers += answers

    def _transact(self, batch: Sequence[_Queued]) -> list[_Answer]:
        """All of *batch*, or an exception and nothing of it."""
        self._set_synchronous(any(queued.kind.durable for queued in batch))
        kinds: dict[Kind[Any, Any], list[_Queued]] = {}
        for queued in batch:
            kinds.setdefault(queued.kind, []).append(queued)
        answers: list[_Answer] = []
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            transaction = Transaction(self._connection, self._clock.now())
            for kind, members in kinds.items():
                results = kind.run(transaction, [queued.op for queued in members])
                answers += zip((queued.future for queued in members), results, strict=True)
            transaction.finish()
            self._connection.execute("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                with contextlib.suppress(Exception):  # the first error is the one to tell
                    self._connection.execute("ROLLBACK")
            raise
        return answers

    def _failed(self, batch: Sequence[_Queued], error: Exception) -> None:
        fault = self._fault_of(error)
        if fault is Fault.OPERATION and len(batch) > 1:
            for queued in batch:
                self._write([queued])
        elif fault is Fault.OPERATION:
            self._answers.append((batch[0].future, error))
        else:
            self._note(fault)
            waits = fault is not Fault.BROKEN and not self._stopping
            self._returned += [queued for queued in batch if queued.kind.patient and waits]
            self._refuse((queued for queued in batch if not (queued.kind.patient and waits)), fault)

    def _fault_of(self, error: Exception) -> Fault:
        fault = fault_of(error)
        return Fault.FULL if fault is Fault.AWAY and self._reserve.is_disk_full() else fault

    def _note(self, fault: Fault) -> None:
        if fault is Fault.FULL:
            self._reserve.drop()
            self._enter(StoreState.FULL)
        elif fault is Fault.BROKEN:
            self._enter(StoreState.BROKEN)

    def _refuse(self, refused: Iterable[_Queued], fault: Fault) -> None:
        self._answers += [(queued.future, refusal(fault)) for queued in refused]

    def _refuse_late(self) -> None:
        """Refuse what has waited for the lock for as long as it may; when stopping, everything."""
        latest = time.monotonic() - self._settings.lock_timeout_s
        with self._wake:
            queue = list(self._queue)
            late = {q for q in queue if self._stopping or (not q.kind.patient and q.since <= latest)}
            self._queue = deque(q for q in queue if q not in late)
        self._refuse(late, Fault.BUSY)

    def _set_synchronous(self, durable: bool) -> None:
        wanted = "FULL" if durable and self._settings.durability is Durability.POWER else "NORMAL"
        if wanted != self._synchronous:
            self._connection.execute(f"PRAGMA synchronous = {wanted}")
            self._synchronous = wanted

    def _enter(self, state: StoreState) -> None:
        if state is self.state or self.state is StoreState.BROKEN:
            return
        self.state = state
        self._call_loop(self._announce, state)

    def _deliver(self) -> None:
        answers, self._answers = self._answers, []
        if answers or self._operations:
            self._call_loop(self._resolve, answers, self._seconds, self._operations)

    def _call_loop(self, callback: Callable[..., object], *arguments: Any) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits for an answer any more
            self._loop.call_soon_threadsafe(callback, *arguments)

    # What follows runs on the event loop.

    def _no_longer_held(self, _: asyncio.Future[Any]) -> None:
        self._held -= 1

    def _announce(self, state: StoreState) -> None:
        self._telemetry.event(EVENT_OF[state])
        for listener in self._listeners:
            listener(state)

    def _resolve(self, answers: Sequence[_Answer], seconds: float, operations: int) -> None:
        """Answer a commit's operations: the one time that it wakes the loop."""
        for future, result in answers:
            if future.done():
                continue
            if isinstance(result, Exception):
                future.set_exception(result)
            else:
                future.set_result(result)
        if operations:
            self._telemetry.observe(Metric.COMMIT_SECONDS, seconds)
            self._telemetry.observe(Metric.COMMIT_ROWS, operations)
