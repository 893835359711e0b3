"""The task queue of a worker: the tasks of its partitions, leasable, waiting or leased."""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Set

from waypost.domain.ids import AppId, NotificationId
from waypost.domain.notification import Lane
from waypost.domain.time import Instant
from waypost.domain.turns import turn_after
from waypost.stores.kafka.folding import Receipts, receipts_of
from waypost.stores.kafka.messages import Task
from waypost.stores.kafka.partitions import PartitionRef
from waypost.stores.kafka.progress import PartitionProgress

_REMEMBERED = 4_000
"""The fresh ids of a partition that are remembered to know a repeat, which comes within seconds."""


_Heap = tuple[AppId, str | None, Lane]
"""The tasks of one app and lane that wait for the same condition, or for a time alone."""
READY_LIMIT = 4_000
"""The leasable tasks of a lane from which no waiting ones join them; its partitions pause until half are gone."""


class PartitionTasks:
    """A partition, while it is ours."""

    def __init__(self, place: PartitionRef, progress: PartitionProgress, turn: int) -> None:
        self.place = place
        self.turn = turn
        """The number of the assignment that brought it; see Committed."""
        self.progress = progress
        self.is_leaving = False
        """Whether nothing more of it is leased."""
        self.is_gone = False
        """Whether it is somebody else's."""
        self.is_paused = False
        self.is_halted = False
        """Whether it holds a message of a newer version."""
        self.replacing: dict[int, TaskEntry] = {}
        """The messages, by offset, that replace a leased task; to be known when they are received."""
        self.leased: set[TaskEntry] = set()
        self._fresh: dict[NotificationId, None] = {}

    def is_repeat(self, task: Task) -> bool:
        """Tell whether the same arrival came before: its first result was not known, so it was produced again."""
        if task.targets is not None:
            return False
        if task.notification.id in self._fresh:
            return True
        self._fresh[task.notification.id] = None
        if len(self._fresh) > _REMEMBERED:
            del self._fresh[next(iter(self._fresh))]
        return False


class TaskEntry:
    """A task at its place in the log, as far as it is settled."""

    __slots__ = ("offset", "part", "receipts", "task")

    def __init__(self, task: Task, part: PartitionTasks, offset: int) -> None:
        self.task = task
        self.part = part
        self.offset: int | None = offset
        """The offset; None: acknowledged, since its bytes may have left (``at_most_once``)."""
        self.receipts: Receipts | None = receipts_of(task)

    @property
    def is_gone(self) -> bool:
        """Whether it is no longer this worker's."""
        return self.part.is_gone

    @property
    def weight(self) -> int:
        """The number of due entries in it: targets, or itself."""
        return 1 if self.receipts is None else len(self.receipts)


class Shelved:
    """A task that is kept only as its place in the log, to be read again when it is wanted."""

    __slots__ = ("app", "condition", "due_at", "id", "is_back", "lane", "offset", "part", "weight")

    def __init__(self, task: Task, part: PartitionTasks, offset: int, due_at: Instant) -> None:
        self.part = part
        self.offset = offset
        self.due_at = due_at
        self.condition = task.condition
        self.weight = 1 if task.targets is None else len(task.targets)
        self.app = task.notification.app
        self.lane = task.notification.lane
        self.id = task.notification.id
        self.is_back = False
        """Whether it was read again, and is leasable."""

    @property
    def is_gone(self) -> bool:
        """Whether it is no longer this worker's."""
        return self.part.is_gone


Waiting = TaskEntry | Shelved


class TaskQueue:
    """The tasks that nobody has leased."""

    def __init__(self) -> None:
        self._ready: dict[Lane, dict[AppId, deque[TaskEntry]]] = {lane: {} for lane in Lane}
        self._counts: dict[Lane, int] = dict.fromkeys(Lane, 0)
        self._last: dict[Lane, AppId] = {}
        self._waiting: dict[_Heap, list[tuple[Instant, int, Waiting]]] = {}
        self._waits: Counter[tuple[Lane, AppId | None]] = Counter()
        """The number of tasks of each lane and app in the heaps."""
        self._coming: Counter[Lane] = Counter()
        """The number of tasks of each lane that the present release has read again."""
        self._last_due = AppId("")
        self._order = itertools.count()
        self.came: dict[Lane, asyncio.Event] = {lane: asyncio.Event() for lane in Lane}
        """Set for each lane whose tasks became leasable, until somebody clears it before looking."""
        self.whole = 0
        """The tasks that wait for a time or a condition and are held in memory."""

    def ready(self, lane: Lane) -> int:
        """Count the leasable tasks of a lane."""
        return self._counts[lane]

    def by_app(self) -> Counter[tuple[Lane, AppId | None]]:
        """Count the tasks of each lane and app, leasable and waiting."""
        found = +self._waits
        for lane, queues in self._ready.items():
            found.update({(lane, app): len(queue) for app, queue in queues.items()})
        return found

    def oldest(self) -> dict[tuple[Lane, AppId | None], Instant]:
        """Find when the first leasable task of each lane and app that was never tried was accepted, or was due."""
        found: dict[tuple[Lane, AppId | None], Instant] = {}
        for lane, queues in self._ready.items():
            for app, queue in queues.items():
                fresh = next((each.task.notification for each in queue if each.task.targets is None), None)
                if fresh is not None:
                    found[lane, app] = fresh.scheduled_at or fresh.created_at
        return found

    def put(self, entry: TaskEntry, *, first: bool = False) -> None:
        """Make a task leasable, behind the others of its app or (given back) before them."""
        notification = entry.task.notification
        queue = self._ready[notification.lane].setdefault(notification.app, deque())
        if first:
            queue.appendleft(entry)
        else:
            queue.append(entry)
        self._counts[notification.lane] += 1
        self.came[notification.lane].set()

    def wait(self, entry: Waiting, until: Instant) -> None:
        """Keep a task until its time, or until its condition is lifted."""
        condition = entry.condition if isinstance(entry, Shelved) else entry.task.condition
        lane, app = _of(entry)
        heap = self._waiting.setdefault((app, condition, lane), [])
        heapq.heappush(heap, (until, next(self._order), entry))
        self.whole += isinstance(entry, TaskEntry)
        self._waits[lane, app] += 1

    def take(self, lane: Lane) -> Iterator[TaskEntry]:
        """Yield the leasable tasks of a lane, apps in turns; whoever stops leaves the rest."""
        queues = self._ready[lane]
        while queues:
            app = min(queues, key=turn_after(self._last.get(lane, "")))
            entry = queues[app].popleft()
            if not queues[app]:
                del queues[app]
            self._counts[lane] -= 1
            self._last[lane] = app
            yield entry

    def promote_due(self, now: Instant, n: int, lifted: Mapping[str, int]) -> tuple[int, list[Shelved]]:
        """Make at most *n* due entries leasable: those whose time is over, then of each lifted condition its room.

        Apps take turns in the former, conditions in the latter, entry by entry. How many, and those of them that are
        to be read again first.
        """
        wanted: list[Shelved] = []
        self._coming.clear()
        left = n - self._release_due(now, n, wanted)
        rooms = dict(lifted)
        heaps = [name for name in self._waiting if name[1] in rooms]
        while left > 0 and heaps:
            for heap in list(heaps):
                condition = heap[1] or ""
                if min(left, rooms[condition]) <= 0 or not self._waiting.get(heap) or self._is_full(heap[2]):
                    heaps.remove(heap)
                    continue
                weight = self._release(heap, wanted)
                left, rooms[condition] = left - weight, rooms[condition] - weight
        return n - left, wanted

    def _is_full(self, lane: Lane) -> bool:
        """Tell whether nothing more of *lane* becomes leasable before some of it is leased."""
        return self._counts[lane] + self._coming[lane] >= READY_LIMIT

    def _release_due(self, now: Instant, n: int, wanted: list[Shelved]) -> int:
        released = 0
        while released < n and (heaps := self._due(now)):
            for heap in heaps:
                if released < n:
                    released += self._release(heap, wanted)
                    self._last_due = heap[0]
        return released

    def conditions(self) -> frozenset[str]:
        """Name the conditions that tasks wait for, besides their time."""
        return frozenset(name for (_, name, _), heap in self._waiting.items() if name is not None and heap)

    def each(self) -> Iterator[Waiting]:
        """Yield every task in the queue."""
        for queues in self._ready.values():
            for queue in queues.values():
                yield from queue
        for heap in self._waiting.values():
            yield from (entry for _, _, entry in heap)

    def remove(self, doomed: Set[Waiting]) -> None:
        """Remove these tasks from the queue."""
        for lane, queues in self._ready.items():
            for app in list(queues):
                kept = deque(entry for entry in queues[app] if entry not in doomed)
                self._counts[lane] -= len(queues[app]) - len(kept)
                queues[app] = kept
                if not kept:
                    del queues[app]
        for name in list(self._waiting):
            heap = [each for each in self._waiting[name] if each[2] not in doomed]
            gone = [entry for _, _, entry in self._waiting[name] if entry in doomed]
            self.whole -= sum(isinstance(entry, TaskEntry) for entry in gone)
            self._waits.subtract(map(_of, gone))
            heapq.heapify(heap)
            self._waiting[name] = heap
            if not heap:
                del self._waiting[name]

    def _due(self, now: Instant) -> list[_Heap]:
        """Name for each app with something due at *now* the heap of what is due first, apps in turn."""
        first: dict[AppId, tuple[Instant, int, _Heap]] = {}
        full = {lane for lane in Lane if self._is_full(lane)}
        for name, heap in self._waiting.items():
            at, order, _ = heap[0]
            if at <= now and name[2] not in full and (name[0] not in first or (at, order) < first[name[0]][:2]):
                first[name[0]] = at, order, name
        return [first[app][2] for app in sorted(first, key=turn_after(self._last_due))]

    def _release(self, name: _Heap, wanted: list[Shelved]) -> int:
        heap = self._waiting[name]
        _, _, entry = heapq.heappop(heap)
        if not heap:
            del self._waiting[name]
        self._waits[_of(entry)] -= 1
        if isinstance(entry, Shelved):
            wanted.append(entry)
            self._coming[entry.lane] += 1
        else:
            self.whole -= 1
            self.put(entry)
        return entry.weight


def _of(entry: Waiting) -> tuple[Lane, AppId]:
    if isinstance(entry, Shelved):
        return entry.lane, entry.app
    return entry.task.notification.lane, entry.task.notification.app
