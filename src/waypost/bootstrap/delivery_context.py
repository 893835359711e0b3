"""The contexts of a worker: what its deliveries, and its duties, work with."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence

from waypost.bootstrap import features
from waypost.bootstrap.fallbacks import fallbacks_of
from waypost.bootstrap.receipts import receipt_links
from waypost.bootstrap.registry import channels_of, families, installed
from waypost.bootstrap.stacks import StackParts
from waypost.config import Config
from waypost.domain.breaker import BreakerRules
from waypost.domain.channel import Channel
from waypost.domain.credential import CredentialId
from waypost.domain.ids import AppId
from waypost.domain.recipient import FactsReader
from waypost.domain.routing import RoutingTable
from waypost.domain.rules import with_rules
from waypost.features.archive.settings import archives
from waypost.ports.clock import Clock
from waypost.ports.dedup import Dedup
from waypost.ports.devices import Devices
from waypost.ports.sender import Sender
from waypost.ports.work import Leases
from waypost.runtime.delivery_context import Claims, DeliveryContext
from waypost.runtime.duties import DutyContext
from waypost.runtime.gates import Gates
from waypost.runtime.poison import PoisonWatch
from waypost.runtime.rates import RateGate
from waypost.runtime.settler import Settler
from waypost.stores.sql.store import Store
from waypost.telemetry import Telemetry
from waypost.telemetry.tracing import Tracing

HELD_OUTCOMES_LIMIT = 20_000
"""Outcomes a worker holds in memory before it leases nothing more."""


def context_of(  # noqa: PLR0913 - one of each that deliveries work with
    config: Config,
    stack_parts: StackParts,
    devices: Devices,
    senders: Mapping[CredentialId, Sender],
    rates: Mapping[CredentialId, RateGate],
    clock: Clock,
    telemetry: Telemetry,
    *,
    leases: Leases,
    poison: PoisonWatch,
    facts: FactsReader | None,
    claims: Claims | None,
    tracing: Tracing | None,
) -> DeliveryContext:
    """Build the context of a worker's deliveries, which come from *leases*: its senders, gates, rules and clock."""
    capabilities = {name: sender.capabilities for name, sender in senders.items()}
    budgets = {lane: chosen.in_flight for lane, chosen in config.lanes.items() if chosen.in_flight is not None}
    fallbacks = fallbacks_of(config)
    gates = Gates(capabilities, budgets, BreakerRules(), telemetry, rates, fallbacks=fallbacks)
    settler = Settler(leases, telemetry, HELD_OUTCOMES_LIMIT, gates.parked)
    settler.pressure = stack_parts.pressure
    return DeliveryContext(
        work=leases,
        devices=devices,
        senders=senders,
        routing=routing_table(config, senders),
        rules={app: chosen.retry for app, chosen in config.apps.items()},
        gates=gates,
        settler=settler,
        poison=poison,
        clock=clock,
        jitter=random.random,
        telemetry=telemetry,
        fallbacks=fallbacks,
        facts=facts,
        claims=claims,
        routes=stack_parts.routes,
        timer=config.timer,
        tracing=tracing,
    )


def routing_table(config: Config, senders: Iterable[CredentialId]) -> RoutingTable:
    """Put together the rules of the core, of every channel, and of every feature."""
    plugins = installed()
    rules = with_rules([*(rule for plugin in plugins for rule in plugin.rules), *features.rules(config)])
    by_app = credentials_by_app(config, senders)
    return RoutingTable(
        channels_of(plugins), by_app, rules, features.renderers(config), families(), receipt_links(config)
    )


def credentials_by_app(
    config: Config, names: Iterable[CredentialId]
) -> dict[AppId, dict[Channel, tuple[CredentialId, ...]]]:
    """List each app's credentials by channel; the default, which has no name, comes first."""
    found: dict[AppId, dict[Channel, tuple[CredentialId, ...]]] = {app: {} for app in config.apps}
    for name in sorted(names):
        of_app = found[name.app]
        of_app[name.channel] = (*of_app.get(name.channel, ()), name)
    return found


def chores_of(
    config: Config,
    store: Store,
    stack_parts: StackParts,
    devices: Devices,
    dedup: Dedup,
    measures: Sequence[Callable[[], None]] = (),
) -> DutyContext:
    """Build the context of the duties that a worker does beside its deliveries; *measures* set gauges."""
    keep_days = config.retention.notifications_days
    retention = store.archive.retention if archives(config) else store.retention
    kept = store.journal, dedup, retention, store.bulk, store.erasures
    return DutyContext(
        stack_parts.work,
        devices,
        *kept,
        keep_days,
        stack_parts.record,
        stack_parts.shares_recording,
        deletes_dead=frozenset(app for app, chosen in config.apps.items() if chosen.dead_devices == "delete"),
        ages=config.retention.devices,
        deletes_erased=config.retention.erased == "delete",
        changes=store.database.changes,
        quiet_until=stack_parts.quiet_until,
        measures=measures,
    )
