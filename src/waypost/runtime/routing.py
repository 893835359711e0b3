"""Routing alone: the targets of a notification are found, stored, and handed on to whoever sends it."""

from __future__ import annotations

from collections.abc import Sequence

from waypost.domain.notification import Lane
from waypost.ports.work import Lease, Leases, Settled, WorkItem
from waypost.runtime.delivery_context import DeliveryContext
from waypost.runtime.leasing import BATCH, Found, LeaseLoop
from waypost.runtime.settler import PART
from waypost.runtime.spans import LaneSpans


class RouteLoop(LeaseLoop):
    """The loop that routes one lane: it settles a notification's targets, and those that need no sending."""

    def __init__(self, lane: Lane, context: DeliveryContext, routes: Leases) -> None:
        super().__init__(lane, context, routes, PART)
        self._spans = LaneSpans(lane, context.tracing)

    async def landed(self) -> None:
        """Do nothing: nothing is in flight between two turns."""

    def _room(self) -> int:
        return 0 if self._context.settler.is_full else BATCH

    async def _start(self, lease: Lease, items: Sequence[WorkItem], found: Found) -> bool:
        """Route *items* and give their targets back to be sent."""
        now = self._context.clock.now()
        spans = self._spans.routing(items)
        with self._context.poison.noting(self.lane, items):
            plans = self._plans(items, found, now)
        routed = [
            Settled(each.item.notification, each.changes, each.targets, each.verdict, given_back=True) for each in plans
        ]
        await self._context.settler.write(lease, routed)
        self._spans.routed(spans, plans)
        self._observe_handover(items, now)
        return True
