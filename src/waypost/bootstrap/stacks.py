"""What carries the work: the store alone, a broker in front of it, or a log."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from waypost.adapters.kafka.settings import KafkaSettings
from waypost.adapters.sql.state import StoreState
from waypost.adapters.sql.store import Store
from waypost.adapters.sql.views import SqlViews
from waypost.bootstrap.places import run_dir_of
from waypost.config import Config, Handoff, Stack
from waypost.domain.errors import ConfigurationError
from waypost.domain.notification import Lane
from waypost.pipeline.record import record
from waypost.ports.broker import Broker
from waypost.ports.clock import Clock
from waypost.ports.holds import Holds
from waypost.ports.keys import Keys
from waypost.ports.peers import Peers
from waypost.ports.pressure import CALM, Pressure
from waypost.ports.views import Views
from waypost.ports.work import Work
from waypost.runtime.identity import RememberedKeys
from waypost.runtime.roles import Role
from waypost.telemetry import Telemetry

if TYPE_CHECKING:
    from waypost.adapters.redis.commands import Redis

BROKER_LEASE_MS = 30_000
"""How long the broker waits for a worker that was handed something and does not say that it has leased it."""
LOG_EXTRA = "waypost[kafka]"
NOTIFICATIONS = "work"
"""The topic of what is to be routed."""
DELIVERIES = "delivery.push"
"""The topic of what was routed; every channel there is pushes."""


class Carrier(Struct, frozen=True):
    """The parts that differ from stack to stack."""

    work: Work
    views: Views
    fault: Callable[[], str | None]
    """Why settlements cannot be written, None while they can."""
    pressure: Callable[[], Pressure] = lambda: CALM
    """How long is waited to be accepted, where the store is written first."""
    routes: Work | None = None
    """What is leased to be routed alone, where sending is apart from it."""
    listen: Callable[[Callable[[Lane], None]], None] = lambda tell: None
    """Let somebody know of work that came by itself."""
    record: Callable[[], Awaitable[bool]] | None = None
    """Write on the ledger, where the store is not written first."""
    shares_recording: bool = False
    """Every process that records does so at once, instead of the one that has the role."""
    keys: Keys | None = None
    """Who may call, where the store need not be asked each time."""
    takes_requests: Callable[[], bool] = lambda: True
    """Whether callers are known, whatever else is away."""
    says: Callable[[], Mapping[str, str]] = dict
    """More lines of readiness, which do not decide it."""


@asynccontextmanager
async def open_carrier(
    config: Config,
    store: Store,
    holds: Holds,
    redis: Redis | None,
    *,
    peers: Peers,
    clock: Clock,
    telemetry: Telemetry,
) -> AsyncIterator[Carrier]:
    """What ``stack`` says; ConfigurationError where that cannot be, Unavailable where it cannot be reached."""
    if config.stack is Stack.EMBEDDED:
        yield Carrier(store.work, store.views, partial(store_fault, store), store.database.commits.pressure)
        return
    if config.stack is Stack.RELAYED:
        async with _relayed(config, store, redis, clock, telemetry) as carrier:
            yield carrier
        return
    settings = kafka_settings(config)
    try:
        from waypost.adapters.kafka.log import Behind, open_log  # noqa: PLC0415 - its client is an extra
    except ModuleNotFoundError as missing:
        raise _missing(missing) from None
    is_shared = store.database.engine.is_remote
    log = await open_log(
        settings,
        Behind(
            store.work,
            store.ledger,
            store.views,
            holds,
            shares_recording=is_shared,
            records_claims=config.dedup is not None,
        ),
        peers=peers,
        clock=clock,
        telemetry=telemetry,
        delivers=Role.WORKER in config.does(),
    )
    keys = RememberedKeys(store.keys, run_dir_of(config) / "identity.json", clock)
    keys.start(telemetry)
    try:
        yield Carrier(
            log.work,
            log.views,
            lambda: log.fault,
            listen=log.on_arrival,
            record=partial(record, log.records, store.ledger),
            shares_recording=is_shared,
            keys=keys,
            takes_requests=lambda: store_fault(store) is None or keys.age_s is not None,
            says=partial(_ledger_says, store, keys),
        )
    finally:
        await keys.stop()
        await log.stop()


@asynccontextmanager
async def _relayed(
    config: Config, store: Store, redis: Redis | None, clock: Clock, telemetry: Telemetry
) -> AsyncIterator[Carrier]:
    from waypost.adapters.sql.relayed.opening import opened_relayed  # noqa: PLC0415 - needed by this stack alone
    from waypost.adapters.sql.relayed.relaying import Topics  # noqa: PLC0415 - as above

    relays = Role.RELAY in config.does()
    async with AsyncExitStack() as brokers:
        notifications, hear = await brokers.enter_async_context(_broker(config, redis, telemetry, NOTIFICATIONS))
        deliveries, hear_too = notifications, hear
        if config.handoff is Handoff.QUEUE:
            deliveries, hear_too = await brokers.enter_async_context(_broker(config, redis, telemetry, DELIVERIES))
        topics = Topics(notifications, deliveries)
        opened = await brokers.enter_async_context(opened_relayed(store, topics, config.outbox, clock, relays=relays))

        def listen(tell: Callable[[Lane], None]) -> None:
            opened.relay.on_arrival = tell
            hear(tell)
            hear_too(tell)

        views = SqlViews(store.database, clock, leases_are_stored=True)
        pressure = store.database.commits.pressure
        yield Carrier(opened.work, views, partial(store_fault, store), pressure, opened.routes, listen)


@asynccontextmanager
async def _broker(
    config: Config, redis: Redis | None, telemetry: Telemetry, topic: str
) -> AsyncIterator[tuple[Broker, Callable[[Callable[[Lane], None]], None]]]:
    """One reader of *topic*, and how to hear of what comes to it without being told by a relay."""
    if config.broker == "kafka":
        try:
            from waypost.adapters.kafka.broker import opened_broker  # noqa: PLC0415 - its client is an extra
        except ModuleNotFoundError as missing:
            raise _missing(missing) from None
        settings = kafka_settings(config)
        if topic != NOTIFICATIONS:
            settings = msgspec.structs.replace(settings, group=f"{settings.group}.{topic}")
        async with opened_broker(settings, telemetry, topic) as kafka:
            yield kafka, kafka.listen
        return
    from waypost.adapters.redis.broker import RedisBroker  # noqa: PLC0415 - as above

    assert redis is not None and config.redis is not None, "the configuration was checked when it was read"
    prefix, reader = f"{config.redis.prefix}{topic}:", uuid.uuid4().hex
    yield RedisBroker(redis, prefix, tuple(config.apps), reader, BROKER_LEASE_MS), lambda tell: None


def _ledger_says(store: Store, keys: RememberedKeys) -> dict[str, str]:
    """How the ledger is, and from where callers are known while it is away."""
    fault = store_fault(store)
    if fault is None:
        return {"ledger": "ok"}
    known = "unknown" if keys.age_s is None else f"snapshot, {keys.age_s:.0f} s old"
    return {"ledger": fault, "identity": known}


def check_log(config: Config) -> str | None:
    """Try the brokers and their topics, which are made where they are missing; which cluster it is, None without one.

    ConfigurationError where work could be lost, Unavailable where nobody answers.
    """
    if config.stack is not Stack.LOG:
        return None
    settings = kafka_settings(config)
    try:
        from waypost.adapters.kafka.topics import describe  # noqa: PLC0415 - its client is an extra
    except ModuleNotFoundError as missing:
        raise _missing(missing) from None
    return describe(settings)


def store_fault(store: Store) -> str | None:
    """Why the store cannot take writes, None while it can."""
    state = store.database.state
    return None if state is StoreState.OK else state.value


def kafka_settings(config: Config) -> KafkaSettings:
    """Where the log or the broker is."""
    if config.kafka is None:
        raise ConfigurationError("kafka", "the log stack needs it: at least kafka.bootstrap")
    return config.kafka


def check_broker(config: Config) -> str:
    """As check_log, of the Kafka that carries: the outbox has what it could lose, so that nothing there is unsafe."""
    try:
        from waypost.adapters.kafka.broker import describe  # noqa: PLC0415 - its client is an extra
    except ModuleNotFoundError as missing:
        raise _missing(missing) from None
    return describe(kafka_settings(config), topics_of(config))


def topics_of(config: Config) -> tuple[str, ...]:
    """What is carried, by name."""
    return (NOTIFICATIONS, DELIVERIES) if config.handoff is Handoff.QUEUE else (NOTIFICATIONS,)


def _missing(missing: ModuleNotFoundError) -> Exception:
    if missing.name is None or not missing.name.startswith("confluent_kafka"):
        return missing
    return ConfigurationError("kafka", f"its client is not installed: pip install '{LOG_EXTRA}'")
