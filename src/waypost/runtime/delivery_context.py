"""The delivery context: the parts that the loops of a worker work with."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence

from msgspec import Struct

from waypost.domain.credential import CredentialId
from waypost.domain.fallback import Fallbacks
from waypost.domain.ids import AppId, NotificationId
from waypost.domain.recipient import FactsReader, Recipient
from waypost.domain.retry import RetryRules
from waypost.domain.routing import RoutingTable
from waypost.pipeline.route import Plan
from waypost.ports.clock import Clock, RandomSource
from waypost.ports.devices import Lookup
from waypost.ports.sender import Sender
from waypost.ports.work import Leases
from waypost.runtime.gates import Gates
from waypost.runtime.poison import PoisonWatch
from waypost.runtime.settler import Settler
from waypost.runtime.timer import TimerSettings
from waypost.telemetry import Telemetry
from waypost.telemetry.tracing import Tracing

Claims = Callable[[Sequence[Plan], Mapping[NotificationId, Recipient]], Awaitable[Sequence[Plan]]]
"""Claims what the deliveries of plans need that others may take first, and returns the plans as far as they got it.

Unavailable where a store is away; then nothing of them has begun.
"""


class DeliveryContext(Struct, frozen=True):
    """The parts that every loop of a worker works with."""

    work: Leases
    devices: Lookup
    senders: Mapping[CredentialId, Sender]
    routing: RoutingTable
    rules: Mapping[AppId, RetryRules]
    gates: Gates
    settler: Settler
    poison: PoisonWatch
    clock: Clock
    jitter: RandomSource
    telemetry: Telemetry
    fallbacks: Fallbacks = Fallbacks()
    facts: FactsReader | None = None
    """Reads what features know of users; None where none asks."""
    claims: Claims | None = None
    """Asked with all that is about to be sent; None where nothing is to be claimed."""
    routes: Leases | None = None
    """The work that is leased for routing alone, where sending is apart from it."""
    timer: TimerSettings = TimerSettings()
    tracing: Tracing | None = None
    """Records spans; None where nothing is traced."""
