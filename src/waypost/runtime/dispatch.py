"""A dispatch: one leased item underway, from plan to its last settled target."""

from __future__ import annotations

from waypost.domain.settlement import Change
from waypost.pipeline.route import Plan
from waypost.ports.work import Lease, Settled


class Dispatch:
    """The state that a worker keeps in memory of an item that it holds; the store keeps the rest."""

    __slots__ = ("changes", "lease", "plan", "started_s", "taken", "waiting")

    def __init__(self, lease: Lease, plan: Plan, started_s: float) -> None:
        self.lease = lease
        self.plan = plan
        self.started_s = started_s
        self.waiting = len(plan.deliveries)
        """The number of targets without a settlement yet."""
        self.taken = 0
        self.changes: list[Change] = []
        """The changes that are decided, but not yet handed to the store."""

    @property
    def is_due(self) -> bool:
        """Whether the store may be told: a notification that has no row yet is written once, when all is decided."""
        return self.waiting == 0 or self.plan.item.devices is None

    def settled(self) -> Settled:
        """Take the changes gathered so far, as the settlement to write now."""
        changes, self.changes = tuple(self.changes), []
        return Settled(self.plan.item.notification, changes, self.plan.targets, self.plan.verdict)
