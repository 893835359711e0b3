"""One worker, put together."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import uvloop
from msgspec import Struct

from waypost.adapters.prometheus.sink import PrometheusSink
from waypost.bootstrap import features
from waypost.bootstrap.api import api_of, intake_of
from waypost.bootstrap.credentials import Sections, credentials_of, held_by
from waypost.bootstrap.delivery_context import chores_of, context_of
from waypost.bootstrap.devices import opened_devices
from waypost.bootstrap.feeds import opened_feed
from waypost.bootstrap.intake import server_tls, servers_of
from waypost.bootstrap.interpreter import make_way, share_the_interpreter
from waypost.bootstrap.limits import bounds_of, for_entrypoints, opened_limiter, rate_gates
from waypost.bootstrap.live import hub_of
from waypost.bootstrap.paths import log_of, metrics_dir, run_dir_of
from waypost.bootstrap.readiness import readiness_of
from waypost.bootstrap.records import recorded, records_of
from waypost.bootstrap.registry import channels_of, families, installed, load
from waypost.bootstrap.senders import connect_ahead
from waypost.bootstrap.shared import cached, cached_pages, keys_of, opened_redis
from waypost.bootstrap.sources import stream_intakes
from waypost.bootstrap.stacks import StackParts, open_carrier
from waypost.bootstrap.tokens import tokens_of
from waypost.bootstrap.traces import opened_tracing
from waypost.config import Config, Stack
from waypost.domain.backlog import Backlog
from waypost.domain.errors import ConfigurationError, WaypostError
from waypost.entrypoints.limits import EntrypointLimits
from waypost.ports.clock import Clock
from waypost.ports.dedup import Dedup
from waypost.ports.devices import Devices
from waypost.ports.lifecycle import Lifecycle
from waypost.ports.limiter import Limiter
from waypost.ports.peers import Peers
from waypost.ports.plugin import Means
from waypost.ports.sending_records import SendingRecords
from waypost.runtime.clock import SystemClock
from waypost.runtime.credential_reload import CredentialReloader
from waypost.runtime.disk import measure_disk
from waypost.runtime.lifecycle import LifecycleGroup
from waypost.runtime.peers import SocketPeers
from waypost.runtime.poison import PoisonWatch
from waypost.runtime.reload_signal import heed_hangups
from waypost.runtime.shares import NOBODY, CriticalPlace
from waypost.runtime.supervisor import Inheritance, say_why
from waypost.runtime.worker import CHANGES_S, Worker, WorkerIdentity
from waypost.runtime.worker_slots import WorkerSlots
from waypost.stores.sql.sharing import SqlOwnership
from waypost.stores.sql.store import Store, open_store
from waypost.telemetry import Combined, Event, Telemetry

if TYPE_CHECKING:
    from waypost.stores.redis.commands import Redis


FOR_CRITICAL, FOR_WRITERS = 10, 2
"""The niceness of an event loop that makes way: for the critical worker; for whoever holds the write lock of a file."""


def worker_main(config_path: Path | None, given: Inheritance) -> int:
    """Run one worker of a supervisor; return the exit status."""
    try:
        config = load(config_path, os.environ)
        if given.is_critical:
            config = config.of_critical_worker()
        uvloop.run(_work_under_supervisor(config, config_path, given))
    except ConfigurationError as wrong:
        return say_why(given, wrong)
    except WaypostError as error:
        print(f"waypost: {error.code}: {error}", file=sys.stderr)
        return 1
    return 0


async def _work_under_supervisor(config: Config, config_path: Path | None, given: Inheritance) -> None:
    """Work until told to stop, or until the supervisor is gone."""
    asyncio.get_running_loop().add_reader(given.life_fd, os._exit, 1)
    outboxes = {slot: socket.socket(fileno=fd) for slot, fd in given.outbox_fds.items()}
    peers = SocketPeers(given.slot, socket.socket(fileno=given.inbox_fd), outboxes)
    peers.start()
    worker_slots = WorkerSlots(run_dir_of(config) / "worker_slots")
    listener = socket.socket(fileno=given.listen_fd)
    critical = CriticalPlace(given.critical_slot, given.is_critical)
    await work(config, config_path, given.slot, worker_slots, peers, listener, lambda: None, critical)


async def work(
    config: Config,
    config_path: Path | None,
    slot: int,
    worker_slots: WorkerSlots,
    peers: Peers,
    listener: socket.socket,
    on_ready: Callable[[], None],
    critical: CriticalPlace = NOBODY,
) -> None:
    """Run one worker, from opening its store to the end of its drain."""
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    clock = SystemClock()
    metrics = PrometheusSink(metrics_dir(config))
    telemetry = Combined(log_of(config, metrics, worker=slot), metrics)
    async with opened_tracing(config, telemetry) as tracing, _opened(config, slot, peers, clock, telemetry) as on:
        tls = server_tls(config)
        sections = Sections(config, config_path, partial(load, config_path, os.environ))
        public_url, ahead = config.rest.public_url, connect_ahead(config)
        means = Means(clock, telemetry, run_dir_of(config), slot, public_url=public_url, ahead=ahead)
        credentials = credentials_of(config, means, sections)
        senders = {name: credential.sender for name, credential in credentials.items()}
        rates = rate_gates(config, on.limiter, clock, telemetry)
        limits = EntrypointLimits(bounds_of(config), for_entrypoints(config, on.limiter, clock), clock, telemetry)
        peers = on.store.peers or peers
        hub = hub_of(config, on.store.feed, peers, clock, telemetry, on.redis)
        grounds = features.grounds_of(
            config, on.store, on.stack_parts.work, on.devices, clock, telemetry, hub, on.records
        )
        grounds = features.complete(
            grounds, cached_pages(on.store.feed, config, on.redis, telemetry), channels_of(installed()), families()
        )
        hub.say_by(features.saying(grounds))
        context = context_of(
            config,
            on.stack_parts,
            on.devices,
            senders,
            rates,
            clock,
            telemetry,
            leases=recorded(on.stack_parts.work, on.records, clock),
            poison=PoisonWatch(worker_slots, slot),
            facts=features.facts_reader(grounds),
            claims=features.claims_of(grounds),
            tracing=tracing,
        )
        shared = SqlOwnership(on.store.shards, on.store.work)
        place = WorkerIdentity(slot, worker_slots, peers, shared, on.stack_parts.fault, config.does(), critical)
        measures = on.store.database.measure, partial(measure_disk, run_dir_of(config), telemetry)
        duty_context = features.with_features(
            chores_of(config, on.store, on.stack_parts, on.devices, on.dedup, measures), grounds
        )
        backlog = Backlog(config.limits.backlog, is_shared=len(config.apps) > 1)
        worker = Worker(context, place, duty_context, backlog)
        on.stack_parts.listen(worker.wake)
        intake = intake_of(config, on.store, on.stack_parts, on.dedup, context, on.devices, worker)
        streams = stream_intakes(config, intake, slot, telemetry, limits)
        for credential in credentials.values():
            credential.on_renewed = context.gates.renewed
        held = held_by(sections, credentials if worker.delivers else {}, tls)
        reloader = CredentialReloader(held, clock, telemetry, warns=slot == 0, rehearsals=sections.rehearsals)
        heed_hangups(reloader.hurry)
        tokens = tokens_of(config, clock, telemetry)
        api = api_of(
            config,
            on.store,
            on.stack_parts,
            duty_context,
            context,
            worker,
            tokens=tokens,
            intake=intake,
            readiness=partial(readiness_of, on.stack_parts, context, worker, worker_slots, streams, reloader),
            limits=limits,
            metrics=metrics,
            grounds=grounds,
            hub=hub,
        )
        features.open_door(grounds, api.intake, api.bulk)
        callers = servers_of(config, api, listener, tls)
        parts: list[Lifecycle] = [reloader, tokens, api.callers, hub, *callers, *streams.values()]
        share_the_interpreter()
        if critical.slot is not None and not critical.is_here:
            make_way(FOR_CRITICAL)
        elif config.workers > 1 and not critical.is_here and not on.store.database.engine.is_remote:
            make_way(FOR_WRITERS)
        await worker.run(LifecycleGroup(parts), stop, on_ready, config.drain_timeout_s)


class _Opened(Struct, frozen=True):
    """The resources of a worker: opened before it, and closed after it."""

    store: Store
    devices: Devices
    dedup: Dedup
    stack_parts: StackParts
    limiter: Limiter
    records: SendingRecords | None
    redis: Redis | None


@asynccontextmanager
async def _opened(
    config: Config, slot: int, peers: Peers, clock: Clock, telemetry: Telemetry
) -> AsyncIterator[_Opened]:
    store = await open_store(
        config.store,
        clock=clock,
        peers=peers,
        telemetry=telemetry,
        tables=features.tables(),
        with_devices=config.devices == "store",
        may_be_away=config.stack is Stack.LOG,
        looks_every_s=0.9 * CHANGES_S,  # a ticker may be a little early
    )
    try:
        async with AsyncExitStack() as stack:
            redis = await stack.enter_async_context(opened_redis(config, telemetry))
            kept = await stack.enter_async_context(opened_devices(config, store, slot, telemetry))
            store.feed = await stack.enter_async_context(opened_feed(config, store.sql_feed, slot, clock, telemetry))
            holds, dedup = keys_of(store, config, redis)
            stack_parts = await stack.enter_async_context(
                open_carrier(config, store, holds, redis, peers=peers, clock=clock, telemetry=telemetry)
            )
            limiter = stack.enter_context(opened_limiter(config, redis, clock))
            devices, records = cached(kept, config, redis, telemetry), records_of(config, redis)
            yield _Opened(store, devices, dedup, stack_parts, limiter, records, redis)
    finally:
        await store.close()
        telemetry.event(Event.PROCESS_STOPPED)
