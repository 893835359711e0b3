"""The size of a run: the figures that are asked for, or smaller ones for a test."""

from __future__ import annotations

from dataclasses import dataclass

from waypost.bench.programs import Programs


@dataclass(frozen=True)
class Setup:
    """The size of a run of all scenarios."""

    programs: Programs
    seconds: float = 600.0
    """The time for which 1,000 a second are sustained; the shorter loads of other scenarios take a part of it."""
    per_s: int = 1_000
    """Notifications a second."""
    users: int = 10_000
    """Users in the registry, and how many of them, or of their devices, do something at the same moment."""
    workers: int = 2

    def part(self, least: float, most: float) -> float:
        """Return a tenth of the time, within bounds."""
        return min(max(self.seconds / 10, least), most)
