"""The stacks that hold the work: the store alone, or a log."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING

from msgspec import Struct

from waypost.bootstrap.paths import run_dir_of
from waypost.bootstrap.registry import families
from waypost.config import Config, Handoff, Stack
from waypost.domain.errors import ConfigurationError
from waypost.domain.extras import how_to_install
from waypost.domain.notification import Lane
from waypost.domain.time import Instant
from waypost.pipeline.record import record
from waypost.ports.broker import DELAYED, ChannelPublisher, Publisher
from waypost.ports.clock import Clock
from waypost.ports.holds import Holds
from waypost.ports.keys import Keys
from waypost.ports.peers import Peers
from waypost.ports.pressure import CALM, Pressure
from waypost.ports.views import Views
from waypost.ports.work import Work
from waypost.runtime.identity import RememberedKeys
from waypost.runtime.roles import Role
from waypost.stores.kafka.settings import KafkaSettings
from waypost.stores.sql.settings import is_postgres
from waypost.stores.sql.state import StoreState
from waypost.stores.sql.store import Store
from waypost.stores.sql.views import SqlViews
from waypost.telemetry import Telemetry

if TYPE_CHECKING:
    from waypost.stores.redis.commands import Redis
    from waypost.stores.sql.outbox.relaying import Relay
    from waypost.stores.sql.outbox.topics import Topics

NOTIFICATIONS = "work"
"""The topic of what is to be routed."""
DELIVERIES = "delivery.push"
"""The topic of what was routed; every channel pushes."""


class StackParts(Struct, frozen=True):
    """The parts that differ from stack to stack."""

    work: Work
    views: Views
    fault: Callable[[], str | None]
    """The reason why settlements cannot be written, None while they can."""
    pressure: Callable[[], Pressure] = lambda: CALM
    """The wait to be accepted, where the store is written first."""
    routes: Work | None = None
    """The work that is leased for routing alone, where sending is apart from it."""
    listen: Callable[[Callable[[Lane], None]], None] = lambda tell: None
    """Calls somebody back for work that came by itself."""
    record: Callable[[], Awaitable[bool]] | None = None
    """Writes on the ledger, where the store is not written first."""
    shares_recording: bool = False
    """Whether all processes that record do so at once, instead of the one that has the role."""
    quiet_until: Callable[[], Instant | None] = lambda: None
    """Tells before when nothing is due, if nothing is written into the store; None where nobody knows."""
    keys: Keys | None = None
    """The API keys, where the store need not be asked each time."""
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
) -> AsyncIterator[StackParts]:
    """Open the stack that ``stack`` names; ConfigurationError where it is impossible, Unavailable where it is away."""
    if config.stack is Stack.EMBEDDED:
        carried = _claimed if is_postgres(config.store.url) else _held_in_memory
        async with carried(config, store, redis, clock, telemetry) as stack_parts:
            yield stack_parts
        return
    settings = kafka_settings(config)
    try:
        from waypost.stores.kafka.log import LedgerStore, open_log  # noqa: PLC0415 - its client is an extra
    except ModuleNotFoundError as missing:
        raise _missing(missing) from None
    is_shared = store.database.engine.is_remote
    log = await open_log(
        settings,
        LedgerStore(
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
        yield StackParts(
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
async def _held_in_memory(
    config: Config, store: Store, redis: Redis | None, clock: Clock, telemetry: Telemetry
) -> AsyncIterator[StackParts]:
    """Open the parts on SQLite, where the owner of a shard keeps its leases in memory."""
    fault, pressure = partial(store_fault, store), store.database.commits.pressure
    yield StackParts(store.work, store.views, fault, pressure, quiet_until=store.work.quiet_until)


@asynccontextmanager
async def _claimed(
    config: Config, store: Store, redis: Redis | None, clock: Clock, telemetry: Telemetry
) -> AsyncIterator[StackParts]:
    """Open the parts on PostgreSQL, where the store keeps the leases, and others may hear of new work."""
    from waypost.stores.sql.claims.opening import opened_claims  # noqa: PLC0415 - its client is an extra

    async with AsyncExitStack() as opening:
        outbox = None
        if config.outbox.to is not None:
            outbox = await opening.enter_async_context(_outbox(config, store, redis, clock, telemetry))
        apart = config.handoff is Handoff.QUEUE
        opened = await opening.enter_async_context(opened_claims(store, clock, apart=apart, outbox=outbox))
        views = SqlViews(store.database, clock, leases_are_stored=True)
        fault, pressure = partial(store_fault, store), store.database.commits.pressure
        yield StackParts(
            opened.work, views, fault, pressure, opened.routes, opened.listen, quiet_until=opened.work.quiet_until
        )


@asynccontextmanager
async def _outbox(
    config: Config, store: Store, redis: Redis | None, clock: Clock, telemetry: Telemetry
) -> AsyncIterator[Relay]:
    """Open the outbox, and publish from it in a process that has the role of relay."""
    from waypost.stores.sql.outbox.relaying import Relay  # noqa: PLC0415 - needed where it is asked for

    async with AsyncExitStack() as opening:
        relay = Relay(store, await _topics(config, redis, telemetry, opening), config.outbox, clock)
        if Role.RELAY in config.does():
            relay.start()
        try:
            yield relay
        finally:
            await relay.stop()


async def _topics(config: Config, redis: Redis | None, telemetry: Telemetry, opening: AsyncExitStack) -> Topics:
    """Open the topics that the outbox is published to."""
    from waypost.stores.sql.outbox.topics import ChannelTopics, LaneTopics  # noqa: PLC0415 - as above

    if config.outbox.topics == "channels":
        return ChannelTopics(await opening.enter_async_context(_channels(config, redis, telemetry)), families())
    notifications = deliveries = await opening.enter_async_context(_topic(config, redis, telemetry, NOTIFICATIONS))
    if config.handoff is Handoff.QUEUE:
        deliveries = await opening.enter_async_context(_topic(config, redis, telemetry, DELIVERIES))
    return LaneTopics(notifications, deliveries)


@asynccontextmanager
async def _channels(config: Config, redis: Redis | None, telemetry: Telemetry) -> AsyncIterator[ChannelPublisher]:
    """Open a publisher of a topic for each family of channels."""
    if config.outbox.to == "kafka":
        try:
            from waypost.stores.kafka.broker import KafkaChannelPublisher, opened  # noqa: PLC0415 - its client is an extra
        except ModuleNotFoundError as missing:
            raise _missing(missing) from None
        async with opened(KafkaChannelPublisher(kafka_settings(config), telemetry, channel_names())) as kafka:
            yield kafka
        return
    from waypost.stores.redis.broker import RedisChannelPublisher  # noqa: PLC0415 - its client is an extra

    assert redis is not None and config.redis is not None, "the configuration was checked when it was read"
    yield RedisChannelPublisher(redis, config.redis.prefix)


def channel_names() -> list[str]:
    """List what there are topics of, where they are by channel: families of channels, and DELAYED."""
    return [*sorted(set(families().values())), DELAYED]


@asynccontextmanager
async def _topic(config: Config, redis: Redis | None, telemetry: Telemetry, topic: str) -> AsyncIterator[Publisher]:
    """Open a publisher of *topic* on the broker that others read."""
    if config.outbox.to == "kafka":
        try:
            from waypost.stores.kafka.broker import KafkaPublisher, opened  # noqa: PLC0415 - its client is an extra
        except ModuleNotFoundError as missing:
            raise _missing(missing) from None
        async with opened(KafkaPublisher(kafka_settings(config), telemetry, topic)) as kafka:
            yield kafka
        return
    from waypost.stores.redis.broker import RedisPublisher  # noqa: PLC0415 - its client is an extra

    assert redis is not None and config.redis is not None, "the configuration was checked when it was read"
    yield RedisPublisher(redis, f"{config.redis.prefix}{topic}:")


def _ledger_says(store: Store, keys: RememberedKeys) -> dict[str, str]:
    """Describe the state of the ledger, and how old the known keys are while it is away."""
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
        from waypost.stores.kafka.topics import describe  # noqa: PLC0415 - its client is an extra
    except ModuleNotFoundError as missing:
        raise _missing(missing) from None
    return describe(settings)


def store_fault(store: Store) -> str | None:
    """Explain why the store cannot take writes; None while it can."""
    state = store.database.state
    return None if state is StoreState.OK else state.value


def kafka_settings(config: Config) -> KafkaSettings:
    """Return the settings of the Kafka that holds the log or the outbox's topics."""
    if config.kafka is None:
        raise ConfigurationError("kafka", "the log stack needs it: at least kafka.bootstrap")
    return config.kafka


def check_broker(config: Config) -> str:
    """Check the Kafka that the outbox is published to; its loss loses no work, unlike that of ``check_log``."""
    try:
        from waypost.stores.kafka.broker import carrying, channel_topics, describe  # noqa: PLC0415 - its client is an extra
    except ModuleNotFoundError as missing:
        raise _missing(missing) from None
    settings = kafka_settings(config)
    if config.outbox.topics == "channels":
        return describe(settings, channel_topics(settings, channel_names()))
    topics = (NOTIFICATIONS, DELIVERIES) if config.handoff is Handoff.QUEUE else (NOTIFICATIONS,)
    return describe(settings, [name for topic in topics for name in carrying(settings, topic)])


def _missing(missing: ModuleNotFoundError) -> Exception:
    if missing.name is None or not missing.name.startswith("confluent_kafka"):
        return missing
    return ConfigurationError("kafka", f"its client is not installed: {how_to_install('kafka')}")
