"""The part of the log that a worker holds: the partitions that the group gave it, and the tasks in them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence

from waypost.domain.errors import Unavailable
from waypost.domain.notification import Lane
from waypost.domain.time import SECOND_MS, Instant, later
from waypost.stores.kafka.consumer import HAND_OVER_S, GroupConsumer
from waypost.stores.kafka.messages import Newer, Task, Unreadable, task_in
from waypost.stores.kafka.partitions import Committed, IncomingMessage, PartitionRef
from waypost.stores.kafka.progress import SPAN, PartitionProgress
from waypost.stores.kafka.rereading import Rereading
from waypost.stores.kafka.settlement_writer import Move
from waypost.stores.kafka.task_queue import READY_LIMIT, PartitionTasks, Shelved, TaskEntry, TaskQueue
from waypost.stores.kafka.topics import TopicNames
from waypost.telemetry import Event, Telemetry

_PROMPT_S = 1.0
"""Seconds for which what is read again is waited for; a partition with a leader answers in a fraction of it."""
_AGAIN_MS = 2 * SECOND_MS
WHOLE_LIMIT = 10_000
"""The waiting tasks held in memory; of the others only the place is, and they are read again."""


class Assignment:
    """The partitions assigned to this process: see Owner; everything runs on the event loop."""

    def __init__(self, topics: TopicNames, telemetry: Telemetry, rereading: Rereading) -> None:
        self.task_queue = TaskQueue()
        self._rereading = rereading
        self.on_arrival: Callable[[Lane], None] = lambda lane: None
        """Called with each lane that tasks came for."""
        self._topics = topics
        self._telemetry = telemetry
        self._parts: dict[PartitionRef, PartitionTasks] = {}
        self._moved = asyncio.Event()
        self.consumer: GroupConsumer | None = None
        self.failure: Exception | None = None
        """The reason why nothing more comes."""
        self._reading: dict[PartitionRef, asyncio.Task[None]] = {}
        """The partitions that are read again just now."""
        self._silent: set[PartitionRef] = set()
        """The partitions of which the last such read was not answered in time."""

    def assigned(self, partitions: Sequence[Committed]) -> None:
        """See Owner."""
        for each in partitions:
            self._parts[each.place] = PartitionTasks(
                each.place, PartitionProgress(each.offset, each.metadata), each.turn
            )
        if partitions:
            self._telemetry.event(Event.PARTITIONS_TAKEN, count=len(partitions), owned=len(self._parts))

    async def revoked(self, places: Sequence[PartitionRef]) -> None:
        """See Owner: nothing more of them is leased, and what is leased may still be settled, for a moment."""
        leaving = [part for place in places if (part := self._parts.get(place))]
        for part in leaving:
            part.is_leaving = True
        self.task_queue.remove({entry for entry in self.task_queue.each() if entry.part.is_leaving})
        try:
            async with asyncio.timeout(HAND_OVER_S):
                while any(part.leased for part in leaving):
                    self._moved.clear()
                    await self._moved.wait()
        except TimeoutError:
            pass  # whoever has them next does it again
        self.lost(places)

    def lost(self, places: Sequence[PartitionRef]) -> None:
        """See Owner."""
        gone = [part for place in places if (part := self._parts.pop(place, None))]
        for part in gone:
            part.is_gone = True
        self.task_queue.remove({entry for entry in self.task_queue.each() if entry.is_gone})
        if gone:
            self._telemetry.event(Event.PARTITIONS_LEFT, count=len(gone), owned=len(self._parts))

    def received(self, batch: Sequence[IncomingMessage]) -> None:
        """See Owner."""
        lanes = {lane for incoming in batch if (lane := self._receive(incoming)) is not None}
        self.regulate()
        for lane in lanes:
            self.on_arrival(lane)

    def moved(self, entry: TaskEntry, move: Move) -> None:
        """Note that a transaction is written: *entry* is what it says."""
        part = entry.part
        entry.receipts = move.receipts
        if move.is_touched:
            if entry.offset is not None:
                part.progress.settle(entry.offset)
            entry.offset = move.replaced_by
        if entry.receipts == {} or move.is_given_back:
            part.leased.discard(entry)
            self._moved.set()
        if move.is_given_back and entry.receipts != {} and entry.offset is not None and not part.is_leaving:
            self.task_queue.put(entry, first=True)

    async def promote_due(self, now: Instant, n: int, lifted: Mapping[str, int]) -> int:
        """Make what is due leasable, and read again what is kept as a place alone; return how many that is by now."""
        released, wanted = self.task_queue.promote_due(now, n, lifted)
        return released - await self._fetch(wanted, now) if wanted else released

    async def stop(self) -> None:
        """Stop reading anything again."""
        reading = list(self._reading.values())
        for each in reading:
            each.cancel()
        await asyncio.gather(*reading, return_exceptions=True)

    async def _fetch(self, wanted: Sequence[Shelved], now: Instant) -> int:
        """Make these leasable; how many due entries of them are not yet.

        Each partition answers for itself: one that does not in time goes on being read, and is not waited for before
        it has answered.
        """
        by_place: dict[PartitionRef, list[Shelved]] = {}
        for each in wanted:
            by_place.setdefault(each.part.place, []).append(each)
        for place, of_place in by_place.items():
            if place in self._reading:
                self._wait_again(of_place, now)
            else:
                task = self._reading[place] = asyncio.create_task(self._read_again(place, of_place, now))
                task.add_done_callback(lambda _, place=place: self._reading.pop(place))  # type: ignore[misc] # it is bound
        waited = [self._reading[place] for place in by_place if place not in self._silent]
        if waited:
            await asyncio.wait(waited, timeout=_PROMPT_S)
        self._silent |= by_place.keys() & self._reading.keys()
        return sum(each.weight for each in wanted if not each.is_back)

    async def _read_again(self, place: PartitionRef, wanted: Sequence[Shelved], now: Instant) -> None:
        try:
            found = await self._rereading.read(place, {each.offset for each in wanted})
        except Unavailable:
            self._silent.add(place)
            self._wait_again(wanted, now)
            return
        self._silent.discard(place)
        for each in wanted:
            if not (each.is_gone or each.part.is_leaving):
                self._unshelve(each, found.get(each.offset))
        for lane in {each.lane for each in wanted}:
            self.on_arrival(lane)

    def _wait_again(self, wanted: Sequence[Shelved], now: Instant) -> None:
        """Make tasks wait a little longer, so that they take no room from what can be read."""
        for each in wanted:
            if not (each.is_gone or each.part.is_leaving):
                self.task_queue.wait(each, later(max(now, each.due_at), _AGAIN_MS))

    def _unshelve(self, shelved: Shelved, value: bytes | None) -> None:
        """Make a task leasable that was read again; one that the topic has dropped since is lost, which is reported."""
        part = shelved.part
        if value is None:
            self._tell_unreadable(part, shelved.offset)
            part.progress.settle(shelved.offset)
            return
        shelved.is_back = True
        self.task_queue.put(TaskEntry(task_in(value), part, shelved.offset))

    def failed(self, error: Exception) -> None:
        """See Owner: whoever leases next hears of it."""
        self.failure = error
        for lane in Lane:
            self.task_queue.came[lane].set()
            self.on_arrival(lane)

    def regulate(self) -> None:
        """Pause partitions with enough in memory or in the metadata; resume those that have room."""
        assert self.consumer is not None, "nothing is received before it is there"
        pausing = [part for part in self._parts.values() if not part.is_paused and self._is_full(part, 1)]
        resuming = [part for part in self._parts.values() if part.is_paused and not self._is_full(part, 2)]
        for part in (*pausing, *resuming):
            part.is_paused = not part.is_paused
        if pausing:
            self.consumer.pause([part.place for part in pausing])
        if resuming:
            self.consumer.resume([part.place for part in resuming])

    def behind(self, lane: Lane) -> int:
        """Count the messages of a lane's partitions that are not received yet, as of some seconds ago."""
        assert self.consumer is not None, "depths are asked for of what runs"
        lags = self.consumer.lags
        return sum(lags.get(place, 0) for place in self._parts if self._topics.lanes.get(place.topic) is lane)

    def leased(self) -> Iterator[TaskEntry]:
        """Yield every leased task."""
        return (entry for part in self._parts.values() for entry in part.leased)

    def _is_full(self, part: PartitionTasks, hysteresis: int) -> bool:
        if part.is_halted or part.progress.span >= SPAN // hysteresis:
            return True
        lane = self._topics.lanes.get(part.place.topic)
        return lane is not None and self.task_queue.ready(lane) >= READY_LIMIT // hysteresis

    def _receive(self, incoming: IncomingMessage) -> Lane | None:
        """Take one message in; return the lane that has more to do."""
        part = self._parts.get(incoming.place)
        if part is None:
            return None
        if incoming.value is None:
            part.progress.reach(incoming.offset)
            return None
        known = part.replacing.pop(incoming.offset, None)
        if not part.progress.receive(incoming.offset) or known is not None:
            return None
        try:
            task = task_in(incoming.value)
        except Newer:
            self._halt(part, incoming.offset)
            return None
        except Unreadable:
            self._tell_unreadable(part, incoming.offset)
            part.progress.settle(incoming.offset)
            return None
        if part.is_repeat(task):
            part.progress.settle(incoming.offset)
            return None
        if part.is_leaving:
            return None  # its next owner reads it
        return self._place(task, part, incoming.offset)

    def _place(self, task: Task, part: PartitionTasks, offset: int) -> Lane | None:
        if task.due_at is not None:
            is_whole = self.task_queue.whole < WHOLE_LIMIT
            waiting = TaskEntry(task, part, offset) if is_whole else Shelved(task, part, offset, task.due_at)
            self.task_queue.wait(waiting, task.due_at)
            return None
        self.task_queue.put(TaskEntry(task, part, offset))
        return task.notification.lane

    def _tell_unreadable(self, part: PartitionTasks, offset: int) -> None:
        self._telemetry.event(
            Event.MESSAGE_UNREADABLE, topic=part.place.topic, partition=part.place.partition, offset=offset
        )

    def _halt(self, part: PartitionTasks, offset: int) -> None:
        """Halt a partition at a message of a newer version, for a worker of that version."""
        if not part.is_halted:
            self._telemetry.event(
                Event.MESSAGE_NEWER, topic=part.place.topic, partition=part.place.partition, offset=offset
            )
        part.is_halted = True
