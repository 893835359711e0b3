"""A schedule in memory, for tests."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from waypost.domain.time import Instant, later
from waypost.ports.broker import Claimed, Due


class MemorySchedule:
    """See Schedule."""

    def __init__(self, claim_ms: int) -> None:
        self._claim_ms = claim_ms
        self._entries: dict[bytes, tuple[Instant, Claimed]] = {}
        """The next time of each id, and its latest claim."""
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
