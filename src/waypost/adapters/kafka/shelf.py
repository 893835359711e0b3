"""What a reader has received of a lane, and nobody has asked for yet: apps take turns."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from waypost.domain.ids import AppId
from waypost.ports.broker import Held


class Shelf:
    """Entries in their order, those of each app apart."""

    def __init__(self) -> None:
        self._apps: dict[AppId, deque[Held]] = {}
        """Who is first has the next turn."""
        self.size = 0

    def put(self, held: Held) -> None:
        """Behind all others of its app."""
        self._apps.setdefault(held.app, deque()).append(held)
        self.size += 1

    def take(self, n: int) -> list[Held]:
        """The next *n*, one of each app in turn."""
        taken: list[Held] = []
        while self._apps and len(taken) < n:
            app = next(iter(self._apps))
            queue = self._apps.pop(app)
            taken.append(queue.popleft())
            if queue:
                self._apps[app] = queue
        self.size -= len(taken)
        return taken

    def keep(self, is_kept: Callable[[Held], bool]) -> None:
        """Have nothing else any more."""
        left = [held for queue in self._apps.values() for held in queue if is_kept(held)]
        self._apps, self.size = {}, 0
        for held in left:
            self.put(held)
