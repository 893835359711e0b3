"""A broker and a schedule in memory, for tests and simulation."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from waypost.domain.ids import AppId
from waypost.domain.notification import Lane
from waypost.domain.time import Instant, later
from waypost.ports.broker import Claimed, Due, Entry, Held
from waypost.ports.clock import Clock


class _Lying:
    """An entry, and who holds it until when."""

    def __init__(self, app: AppId, body: bytes, place: str) -> None:
        self.app = app
        self.body = body
        self.place = place
        self.reader: object = None
        self.until: float = 0


class MemoryLanes:
    """What all readers share."""

    def __init__(self, clock: Clock, lease_ms: int) -> None:
        self.clock = clock
        self.lease_s = lease_ms / 1000
        self.entries: dict[Lane, dict[str, _Lying]] = {lane: {} for lane in Lane}
        self.places = itertools.count(1)


class MemoryBroker:
    """See Broker; one reader."""

    def __init__(self, lanes: MemoryLanes) -> None:
        self._lanes = lanes

    async def publish(self, lane: Lane, entries: Sequence[Entry]) -> None:
        """See Broker."""
        for each in entries:
            place = str(next(self._lanes.places))
            self._lanes.entries[lane][place] = _Lying(each.app, each.body, place)

    async def read(self, lane: Lane, n: int) -> list[Held]:
        """See Broker."""
        now_s = self._lanes.clock.monotonic()
        free: dict[AppId, list[_Lying]] = {}
        for entry in self._lanes.entries[lane].values():
            if entry.until <= now_s:
                free.setdefault(entry.app, []).append(entry)
        queues = [sorted(entries, key=lambda entry: entry.reader is None) for entries in free.values()]
        taken = list(itertools.islice(_in_turns(queues), n))
        for entry in taken:
            entry.reader, entry.until = self, now_s + self._lanes.lease_s
        return [Held(entry.app, entry.body, entry.place) for entry in taken]

    async def ack(self, lane: Lane, held: Sequence[Held]) -> None:
        """See Broker."""
        lying = self._lanes.entries[lane]
        for each in held:
            if (entry := lying.get(each.place)) is not None and entry.reader is self:
                del lying[each.place]


def _in_turns(queues: Sequence[list[_Lying]]) -> Iterator[_Lying]:
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
