"""Group commit: one writer thread per process turns everything queued into one transaction at a time."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from msgspec import structs

from waypost.ports.clock import Clock
from waypost.ports.pressure import CALM, Pressure
from waypost.stores.sql.commit_queue import CommitQueue, Queued
from waypost.stores.sql.deadlines import CommitDeadlines
from waypost.stores.sql.engine import Busy, Fence, InDoubt, Writer
from waypost.stores.sql.faults import StoreFault, refusal
from waypost.stores.sql.settings import SqlSettings
from waypost.stores.sql.state import EVENT_OF, StoreState
from waypost.stores.sql.transaction import Op, OperationKind, Result, Transaction
from waypost.telemetry.metrics import Metric
from waypost.telemetry.sink import Telemetry

_UNWELL = (StoreState.FULL, StoreState.AWAY)
_CLASHES = 8
"""The number of times that a transaction is repeated that stood in another's way."""
_RETRY_PAUSE_S = 0.25
"""Seconds that patient operations wait before the store is tried again."""


_Answer = tuple[asyncio.Future[Any], Any]
"""A future and its result; an exception is raised there."""


class _InDoubt(NamedTuple):
    """A commit of which nobody knows whether it was made; who is not patient was refused."""

    batch: int
    waiting: list[Queued]
    answers: list[_Answer]
    """The answers for *waiting*, if it was committed."""


def _asks_first(item: tuple[OperationKind[Any, Any], list[Queued]]) -> bool:
    """Order kinds: what may commit a table that it misses does so before another has written anything."""
    return not item[0].pipelined


class GroupCommit:
    """A queue of operations from the event loop, answered after their commit, which wakes the loop once for each.

    A busy store (the write lock is taken, or a commit takes, longer than the timeout) refuses what is not patient with
    ``Unavailable``, and says of what is being accepted that it is in doubt; a full one with ``StorageFull``, dropping
    the reserve so that patient operations still fit; a damaged one refuses everything with ``StorageBroken``. One that
    is away refuses what is not patient at once, and is tried again and again: nobody waits for a server that does not
    answer.
    """

    def __init__(
        self,
        writer: Writer,
        settings: SqlSettings,
        *,
        clock: Clock,
        telemetry: Telemetry,
    ) -> None:
        self._writer = writer
        self._settings = settings
        self._clock = clock
        self._telemetry = telemetry
        self._loop = asyncio.get_running_loop()
        self._queue = CommitQueue(settings.commit_rows)
        self._deadlines = CommitDeadlines(self._queue, self._loop, settings.lock_timeout_s)
        self._answers: list[_Answer] = []
        self._listeners: list[Callable[[StoreState], None]] = []
        self._in_doubt: _InDoubt | None = None
        self._held = 0
        self._seconds = 0.0
        self._operations = 0
        self._took: list[tuple[str, float]] = []
        """The seconds that the operations of each kind took, in what was tried of this commit."""
        self._thread = threading.Thread(target=self._run, name="waypost-writer", daemon=True)
        self.state = StoreState.OK
        self._look()
        self.on_commit: Callable[[], None] = lambda: None
        """Called on the event loop after each commit, before anybody is answered."""
        self.fence: Fence = lambda _: None
        """The function by which each transaction asks for the shards that are still this process's."""

    def start(self) -> None:
        """Start writing."""
        self._thread.start()

    async def stop(self) -> None:
        """Write what is queued, then end; what cannot be written is refused."""
        self._queue.close()
        if self._thread.ident is not None:
            await asyncio.to_thread(self._thread.join)

    def submit(
        self, kind: OperationKind[Op, Result], op: Op, rows: int = 1, *, urgent: bool = False
    ) -> asyncio.Future[Result]:
        """Queue *op*; *rows* is its size. Shield the future where the caller may be cancelled.

        An *urgent* one goes before others that are accepted, and before other processes.
        """
        if self.state is StoreState.AWAY and not kind.patient:
            raise refusal(StoreFault.LOST)
        future: asyncio.Future[Result] = self._loop.create_future()
        self._queue.put(Queued(kind, op, rows, future, is_urgent=urgent))
        if kind.patient:
            self._held += 1
            future.add_done_callback(self._no_longer_held)
        else:
            self._deadlines.watch()
        return future

    def on_state_change(self, listener: Callable[[StoreState], None]) -> None:
        """Call *listener* on the event loop whenever ``state`` has changed."""
        self._listeners.append(listener)

    @property
    def held(self) -> int:
        """The number of patient operations that are not written yet."""
        return self._held

    def pressure(self) -> Pressure:
        """Measure how long is waited for a commit; a store that takes none says so itself to whoever submits."""
        if self.state is not StoreState.OK:
            return CALM
        pressure = self._queue.pressure(time.monotonic(), self._settings.lock_timeout_s)
        if self._writer.is_hurried():
            pressure = structs.replace(pressure, is_hurried=True)
        return structs.replace(pressure, accepts=max(1.0, pressure.accepts)) if self._deadlines.is_overdue else pressure

    def report(self, fault: StoreFault) -> None:
        """Note that a reader found the store damaged or away."""
        if fault is StoreFault.BROKEN:
            self._enter(StoreState.BROKEN)
        elif fault is StoreFault.LOST and self.state is not StoreState.AWAY:
            self._enter(StoreState.AWAY)
            self._queue.wake()

    def _look(self) -> None:
        """Find out how the store is at the beginning; wait for one that is away."""
        try:
            if not self._writer.is_well():
                self.state = StoreState.FULL
        except Exception as error:
            if self._writer.fault_of(error) is not StoreFault.LOST:
                raise
            self._enter(StoreState.AWAY)

    # What follows runs in the writer thread.

    def _run(self) -> None:
        while self._queue.wait(self._is_unwell, _RETRY_PAUSE_S):
            started = time.monotonic()
            self._operations = 0
            self._deadlines.round_began()
            if self.state is StoreState.BROKEN:
                self._refuse(self._take(), StoreFault.BROKEN)
            else:
                self._round(started)
            ended = time.monotonic()
            self._queue.written(ended)
            self._deadlines.round_ended()
            self._seconds = ended - started
            self._deliver()
        if self._in_doubt is not None:  # nobody is left to ask
            self._refuse(self._in_doubt.waiting, StoreFault.LOST)
            self._deliver()

    def _is_unwell(self) -> bool:
        return self.state in _UNWELL

    def _is_urgent(self) -> bool:
        return self._queue.is_urgent(time.monotonic())

    def _round(self, started: float) -> None:
        """Run one turn of this process to write."""
        try:
            with self._writer.turn(self._patience_s(started), urgent=self._is_urgent):
                self._recover()
                if self._patience_s(time.monotonic()) == 0:
                    self._refuse_late()
                batch = self._take()
                self._deadlines.took(batch)
                self._operations = len(batch)
                if batch:
                    self._write(batch)
        except Busy:
            self._refuse_late()
        except Exception as error:  # noqa: BLE001 - whatever the store raised: the operations wait, the thread lives on
            self._note(self._writer.fault_of(error))
            self._refuse_late()
            time.sleep(_RETRY_PAUSE_S)  # nothing tells when a disk or a server answers again

    def _patience_s(self, now: float) -> float:
        return max(0.0, self._queue.oldest(now) + self._settings.lock_timeout_s - now)

    def _recover(self) -> None:
        if self._in_doubt is not None:
            self._resolve_doubt(self._in_doubt)
        if self._is_unwell() and self._writer.is_well():
            self._enter(StoreState.OK)

    def _resolve_doubt(self, doubt: _InDoubt) -> None:
        """Ask what became of the commit during which the connection was lost."""
        if self._writer.was_committed(doubt.batch):
            self._answers += doubt.answers
        else:
            self._queue.put_first(doubt.waiting)
        self._in_doubt = None

    def _take(self) -> list[Queued]:
        """Take what goes into the next commit; while the disk is full only what is patient, refusing the rest."""
        batch = self._queue.take(time.monotonic(), hurried=self._writer.is_hurried())
        if self.state is not StoreState.FULL:
            return batch
        self._refuse((queued for queued in batch if not queued.kind.patient), StoreFault.FULL)
        return [queued for queued in batch if queued.kind.patient]

    def _write(self, batch: Sequence[Queued]) -> None:
        for again in range(_CLASHES, -1, -1):
            try:
                self._answers += self._transact(batch)
            except Exception as error:  # noqa: BLE001 - what an operation raises belongs to whoever submitted it
                if again and self._writer.fault_of(error) in (StoreFault.CLASH, StoreFault.TAKEN):
                    continue
                self._failed(batch, error)
            return

    def _transact(self, batch: Sequence[Queued]) -> list[_Answer]:
        """Write all of *batch* that was not refused meanwhile, or raise and write nothing."""
        asked = {queued.kind for queued in batch}
        durable, ordered = any(kind.durable for kind in asked), any(kind.ordered for kind in asked)
        self._writer.begin(durable=durable, ordered=ordered, pipelined=all(kind.pipelined for kind in asked))
        kinds: dict[OperationKind[Any, Any], list[Queued]] = {}
        for queued in self._deadlines.begins(batch):
            kinds.setdefault(queued.kind, []).append(queued)
        answers: list[_Answer] = []
        try:
            transaction = Transaction(self._writer.connection, self._clock.now(), self.fence)
            for kind, members in sorted(kinds.items(), key=_asks_first):
                began = time.monotonic()
                results = kind.run(transaction, [queued.op for queued in members])
                self._took.append((kind.name, time.monotonic() - began))
                answers += zip((queued.future for queued in members), results, strict=True)
            transaction.finish()
            self._writer.commit()
        except InDoubt as lost:
            patient = [queued for queued in batch if queued.kind.patient]
            waits = {queued.future for queued in patient}
            self._in_doubt = _InDoubt(lost.batch, patient, [each for each in answers if each[0] in waits])
            raise
        except BaseException:
            self._writer.rollback()
            raise
        return answers

    def _failed(self, batch: Sequence[Queued], error: Exception) -> None:
        if isinstance(error, InDoubt):
            self._note(StoreFault.LOST)
            self._refuse((queued for queued in batch if not queued.kind.patient), StoreFault.LOST)
            return
        fault = self._writer.fault_of(error)
        if fault in (StoreFault.OPERATION, StoreFault.TAKEN) and len(batch) > 1:
            for queued in batch:
                self._write([queued])
        elif fault in (StoreFault.OPERATION, StoreFault.TAKEN):
            self._answers.append((batch[0].future, error))
        else:
            self._note(fault)
            waits = fault is not StoreFault.BROKEN and not self._queue.is_closed
            self._queue.give_back([queued for queued in batch if queued.kind.patient and waits])
            self._refuse((queued for queued in batch if not (queued.kind.patient and waits)), fault)

    def _note(self, fault: StoreFault) -> None:
        if fault is StoreFault.FULL:
            self._writer.use_reserve()
            self._enter(StoreState.FULL)
        elif fault is StoreFault.LOST:
            self._enter(StoreState.AWAY)
        elif fault is StoreFault.BROKEN:
            self._enter(StoreState.BROKEN)

    def _refuse(self, refused: Iterable[Queued], fault: StoreFault) -> None:
        self._answers += [(queued.future, refusal(fault)) for queued in refused]

    def _refuse_late(self) -> None:
        """Refuse what has waited for as long as it may; with the store away what is not patient, when stopping all."""
        is_away = self.state is StoreState.AWAY
        late = self._queue.drop_late(time.monotonic() - (0.0 if is_away else self._settings.lock_timeout_s))
        self._refuse(late, StoreFault.LOST if is_away else StoreFault.BUSY)

    def _enter(self, state: StoreState) -> None:
        if state is self.state or self.state is StoreState.BROKEN:
            return
        self.state = state
        self._call_loop(self._announce, state)

    def _deliver(self) -> None:
        answers, self._answers = self._answers, []
        took, self._took = self._took, []
        if answers or self._operations:
            self._call_loop(self._resolve, answers, self._seconds, self._operations, took)

    def _call_loop(self, callback: Callable[..., object], *arguments: Any) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits for an answer any more
            self._loop.call_soon_threadsafe(callback, *arguments)

    # What follows runs on the event loop.

    def _no_longer_held(self, _: asyncio.Future[Any]) -> None:
        self._held -= 1

    def _announce(self, state: StoreState) -> None:
        code = {} if state is StoreState.OK else {"code": f"storage_{state}"}
        self._telemetry.event(EVENT_OF[state], **code)
        for listener in self._listeners:
            listener(state)

    def _resolve(
        self, answers: Sequence[_Answer], seconds: float, operations: int, took: Sequence[tuple[str, float]]
    ) -> None:
        """Answer a commit's operations, the one time that it wakes the loop."""
        self.on_commit()
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
            for query, its_seconds in took:
                self._telemetry.observe(Metric.STORE_SECONDS, its_seconds, query=query)
