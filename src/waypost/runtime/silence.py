"""The silence of workers, in time in which their supervisor itself ran.

A container that was paused, or a machine that was, stands still as a whole: who wakes up has heard of nobody for as
long, and nobody could have been heard of. So a gap between two looks counts for `LONGEST_GAP_S` at most.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from waypost.runtime.worker_slots import Presence

LONGEST_GAP_S: Final = 1.0


class Silence:
    """The last sign of life of each worker, and its time."""

    def __init__(self, now_s: float) -> None:
        self._looked_s = now_s
        self._awake_s = 0.0
        """The seconds that have passed without the gaps."""
        self._heard: dict[int, tuple[int, float, float]] = {}
        """The last sign of each slot: the process, its last heartbeat, and ``_awake_s`` when that was first seen."""

    def look(self, present: Iterable[Presence], now_s: float) -> dict[int, float]:
        """Return for how long each of *present*, as read at *now_s*, has been silent, in seconds by its slot."""
        self._awake_s += min(now_s - self._looked_s, LONGEST_GAP_S)
        self._looked_s = now_s
        silent_s: dict[int, float] = {}
        for each in present:
            heard = self._heard.get(each.slot)
            if heard is None or heard[:2] != (each.pid, each.heartbeat_s):
                heard = self._heard[each.slot] = (each.pid, each.heartbeat_s, self._awake_s)
            silent_s[each.slot] = self._awake_s - heard[2]
        return silent_s
