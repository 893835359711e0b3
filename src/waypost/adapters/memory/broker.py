"""A broker and a schedule in memory, for tests and simulation."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from waypost.domain.ids import AppId
from waypost.domain.notification import Lane
from waypost.domain.time import Instant, later
from waypost.ports.broker import Claimed, Due, Held
from waypost.ports.clock import Clock


class _Entry:
    """An entry, and who holds it until when."""

    def __init__(self, app: AppId, body: bytes, place: str) -> None:
        self.app = app
        self.body = body
        self.place = place
        self.reader: object = None
        self.until: float = 0
        self.deliveries = 0


class MemoryLanes:
    """What all readers share."""

    def __init__(self, clock: Clock, lease_ms: int) -> None:
        self.clock = clock
        self.lease_s = lease_ms / 1000
        self.entries: dict[Lane, dict[str, _Entry]] = {lane: {} for lane in Lane}
        self.places = itertools.count(1)


class MemoryBroker:
    """See Broker; one reader."""

    def __init__(self, lanes: MemoryLanes) -> None:
        self._lanes = lanes

    async def publish(self, lane: Lane, entries: Sequence[tuple[AppId, bytes]]) -> None:
        """See Broker."""
        for app, body in entries:
            place = str(next(self._lanes.places))
            self._lanes.entries[lane][place] = _Entry(app, body, place)

    async def read(self, lane: Lane, n: int) -> list[Held]:
        """See Broker."""
        now_s = self._lanes.clock.monotonic()
        free: dict[AppId, list[_Entry]] = {}
        for entry in self._lanes.entries[lane].values():
            if entry.until <= now_s:
                free.setdefault(entry.app, []).append(entry)
        queues = [sorted(entries, key=lambda entry: entry.deliveries == 0) for entries in free.values()]
        taken = list(itertools.islice(_in_turns(queues), n))
        for entry in taken:
            entry.reader, entry.until = self, now_s + self._lanes.lease_s
            entry.deliveries += 1
        return [Held(entry.app, entry.body, entry.place, entry.deliveries) for entry in taken]

    async def extend(self, lane: Lane, held: Sequence[Held]) -> list[Held]:
        """See Broker."""
        until = self._lanes.clock.monotonic() + self._lanes.lease_s
        for entry in self._owned(lane, held):
            entry.until = until
        return self._refused(lane, held)

    async def ack(self, lane: Lane, held: Sequence[Held]) -> list[Held]:
        """See Broker."""
        refused = self._refused(lane, held)
        for entry in self._owned(lane, held):
            del self._lanes.entries[lane][entry.place]
        return refused

    async def give_back(self, lane: Lane, held: Sequence[Held]) -> list[Held]:
        """See Broker."""
        refused = self._refused(lane, held)
        for entry in self._owned(lane, held):
            entry.reader, entry.until = None, 0
        return refused

    def _owned(self, lane: Lane, held: Sequence[Held]) -> list[_Entry]:
        entries = (self._lanes.entries[lane].get(each.place) for each in held if self._owns(lane, each))
        return [entry for entry in entries if entry is not None]

    def _refused(self, lane: Lane, held: Sequence[Held]) -> list[Held]:
        return [each for each in held if not self._owns(lane, each)]

    def _owns(self, lane: Lane, held: Held) -> bool:
        entry = self._lanes.entries[lane].get(held.place)
        return entry is not None and entry.reader is self and entry.deliveries == held.delivery


def _in_turns(queues: Sequence[list[_Entry]]) -> Iterator[_Entry]:
    for row in itertools.zip_longest(*queues):
        yield from (entry for entry in row if entry is not None)


class MemorySchedule:
    """See Schedule."""

    def __init__(self, claim_ms: int) -> None:
        self._claim_ms = claim_ms
        self._entries: dict[bytes, tuple[Instant, Claimed]] = {}
        """Each id's next time, and its latest claim."""
        self._tokens = itertools.count(1)

    async def put(self, entries: Sequence[Due]) -> None:
        """See Schedule."""
        self._entries |= {due.id: (due.at, Claimed(due, b"")) for due in entries}

    async def claim(self, now: Instant, n: int) -> list[Claimed]:
        """See Schedule."""
        due = sorted((at, claimed.due.id) for at, claimed in self._entries.values() if at <= now)[:n]
        taken: list[Claimed] = []
        for _, id_ in due:
            before = self._entries[id_][1]
            taken.append(Claimed(before.due, b"%d" % next(self._tokens), before.failures))
            self._entries[id_] = (later(now, self._claim_ms), taken[-1])
        return taken

    async def confirm(self, claimed: Sequence[Claimed]) -> list[Claimed]:
        """See Schedule."""
        refused = self._refused(claimed)
        for each in claimed:
            if each not in refused:
                del self._entries[each.due.id]
        return refused

    async def put_back(self, claimed: Sequence[Claimed], at: Instant) -> list[Claimed]:
        """See Schedule."""
        refused = self._refused(claimed)
        for each in claimed:
            if each not in refused:
                self._entries[each.due.id] = (at, Claimed(each.due, b"", each.failures + 1))
        return refused

    async def drop(self, ids: Sequence[bytes]) -> int:
        """See Schedule."""
        return sum(self._entries.pop(id_, None) is not None for id_ in ids)

    def _refused(self, claimed: Sequence[Claimed]) -> list[Claimed]:
        return [each for each in claimed if self._entries.get(each.due.id, (0, None))[1] != each]
