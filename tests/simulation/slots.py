"""Worker slots and peers of simulated processes, in plain collections."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from waypost.domain.ids import SHARDS, NotificationId
from waypost.domain.notification import Lane
from waypost.ports.ownership import CriticalMoved, CriticalPart
from waypost.ports.peers import Answerer
from waypost.runtime.worker_slots import Presence, WorkerState

if TYPE_CHECKING:
    from tests.simulation.process import Process
    from tests.simulation.world import World

ROLE_S = 5.0
"""The seconds after which a role is free whose holder stands still."""
LOST = 0.2
"""The part of messages between workers that are lost."""


class MemorySlots:
    """See WorkerSlots: what is noted here outlives the worker."""

    def __init__(self) -> None:
        self._present: dict[int, Presence] = {}
        self._notes: dict[int, dict[Lane, tuple[NotificationId, ...]]] = {}
        self._suspects: dict[NotificationId, int] = {}

    def beat(self, slot: int, state: WorkerState, now_s: float) -> None:
        """See WorkerSlots."""
        self._present[slot] = Presence(slot, slot, state, now_s)

    def present(self) -> list[Presence]:
        """See WorkerSlots."""
        return list(self._present.values())

    def note(self, slot: int, lane: Lane, ids: Sequence[NotificationId]) -> None:
        """See WorkerSlots."""
        self._notes.setdefault(slot, {})[lane] = tuple(ids)

    def bury(self, slot: int) -> int:
        """See WorkerSlots."""
        noted = self._notes.pop(slot, {})
        for ids in noted.values():
            for each in ids:
                self._suspects[each] = self._suspects.get(each, 0) + (len(ids) == 1)
        self._present.pop(slot, None)
        return sum(map(len, noted.values()))

    def suspects(self) -> dict[NotificationId, int]:
        """See WorkerSlots."""
        return dict(self._suspects)

    def clear(self, notification_id: NotificationId) -> None:
        """See WorkerSlots."""
        self._suspects.pop(notification_id, None)


class MemoryPeers:
    """See Peers: messages arrive late, in any order, or not at all."""

    def __init__(self, world: World, process: Process) -> None:
        self._world = world
        self._process = process
        self.listeners: dict[str, Answerer] = {}

    def on(self, topic: str, answer: Answerer) -> None:
        """See Peers."""
        self.listeners[topic] = answer

    def tell(self, topic: str, body: bytes = b"") -> None:
        """See Peers."""
        for other in self._world.alive():
            if other is not self._process:
                other.hear(topic, body)

    async def ask(self, topic: str, body: bytes, timeout_s: float) -> list[bytes]:
        """See Peers: nobody here asks."""
        raise AssertionError(f"{topic} is asked in no simulation")


class MemoryOwnership:
    """See Ownership: the memory store has no shards, so that everybody has a fair share; roles are real."""

    def __init__(self, world: World, process: Process) -> None:
        self._world = world
        self._process = process

    def owned(self) -> int:
        """See Ownership."""
        return -(-SHARDS // self.sharers())

    def sharers(self) -> int:
        """See Ownership."""
        return max(1, len(self._world.alive()))

    async def attend(self) -> None:
        """See Ownership."""

    async def acquire(self, wanted: int) -> int:
        """See Ownership."""
        return wanted

    async def leave(self) -> None:
        """See Ownership."""

    def offer(self, n: int) -> None:
        """See Ownership."""

    async def hand_over(self) -> int:
        """See Ownership."""
        return 0

    def offered(self) -> int:
        """See Ownership."""
        return 0

    async def claim_critical(self, part: CriticalPart) -> CriticalMoved:
        """See Ownership: it comes with the shards."""
        return CriticalMoved(0, 0)

    async def take_role(self, name: str) -> bool:
        """See Ownership."""
        roles, now_s = self._world.roles, self._process.now_s
        holder, until_s = roles.get(name, (self._process, 0.0))
        if holder is not self._process and not holder.is_dead and until_s > now_s:
            return False
        roles[name] = self._process, now_s + ROLE_S
        return True
