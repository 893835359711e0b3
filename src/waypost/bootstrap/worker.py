"""One worker, put together."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import socket
import sys
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path

import uvloop

from waypost.adapters.prometheus.sink import PrometheusSink
from waypost.adapters.sql.sharing import SqlOwnership
from waypost.adapters.sql.store import Store, open_store
from waypost.bootstrap.credentials import Sections, credentials_of, held_by
from waypost.bootstrap.devices import opened_devices
from waypost.bootstrap.doors import doors_of, server_tls
from waypost.bootstrap.interpreter import share_the_interpreter
from waypost.bootstrap.limits import bounds_of, for_doors, opened_limiter, rate_gates
from waypost.bootstrap.places import log_of, metrics_dir, run_dir_of
from waypost.bootstrap.registry import channels_of, installed, load
from waypost.bootstrap.senders import content_checks, registration_checks
from waypost.bootstrap.shared import cached, keys_of, opened_redis
from waypost.bootstrap.sources import stream_doors
from waypost.bootstrap.stacks import Carrier, open_carrier
from waypost.bootstrap.tokens import tokens_of
from waypost.config import Config, SourceName, Stack
from waypost.domain.breaker import BreakerRules
from waypost.domain.errors import ConfigurationError, WaypostError
from waypost.domain.ids import CredentialId
from waypost.entrypoints.callers import Authenticator
from waypost.entrypoints.limits import DoorLimits
from waypost.entrypoints.rest.api import Api, Readiness
from waypost.entrypoints.streams.door import StreamDoor
from waypost.pipeline.bulk_intake import BulkIntake
from waypost.pipeline.explain import Explain
from waypost.pipeline.intake import Intake
from waypost.ports.clock import Clock
from waypost.ports.dedup import Dedup
from waypost.ports.devices import Devices
from waypost.ports.lifecycle import Lifecycle
from waypost.ports.peers import Peers
from waypost.ports.plugin import Means
from waypost.ports.sender import Sender
from waypost.ports.tokens import Tokens
from waypost.runtime.board import Board, WorkerState
from waypost.runtime.clock import RandomIds, SystemClock
from waypost.runtime.crew import Crew
from waypost.runtime.duties import Chores
from waypost.runtime.gates import Gates
from waypost.runtime.hangup import heed_hangups
from waypost.runtime.keyring import Keyring
from waypost.runtime.peers import SocketPeers
from waypost.runtime.poison import PoisonWatch
from waypost.runtime.rates import RateGate
from waypost.runtime.roles import Role
from waypost.runtime.settler import Settler
from waypost.runtime.supervisor import SILENCE_S, Inheritance, say_why
from waypost.runtime.together import Together
from waypost.runtime.worker import Place, Worker
from waypost.telemetry import Combined, Event, Telemetry

HELD_OUTCOMES_LIMIT = 20_000
"""Outcomes a worker holds in memory before it leases nothing more."""


def worker_main(config_path: Path | None, given: Inheritance) -> int:
    """Run one worker of a supervisor; the exit status."""
    try:
        config = load(config_path, os.environ)
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
    board = Board(run_dir_of(config) / "board")
    listener = socket.socket(fileno=given.listen_fd)
    await work(config, config_path, given.slot, board, peers, listener, lambda: None)


async def work(
    config: Config,
    config_path: Path | None,
    slot: int,
    board: Board,
    peers: Peers,
    listener: socket.socket,
    on_ready: Callable[[], None],
) -> None:
    """One worker, from its store to its drain."""
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    clock = SystemClock()
    metrics = PrometheusSink(metrics_dir(config))
    telemetry = Combined(log_of(config, worker=slot), metrics)
    store = await open_store(
        config.store,
        clock=clock,
        peers=peers,
        telemetry=telemetry,
        with_devices=config.devices == "store",
        may_be_away=config.stack is Stack.LOG,
    )
    try:
        async with AsyncExitStack() as stack:
            redis = await stack.enter_async_context(opened_redis(config, telemetry))
            kept = await stack.enter_async_context(opened_devices(config, store, slot, telemetry))
            devices = cached(kept, config, redis, telemetry)
            holds, dedup = keys_of(store, config, redis)
            carrier = await stack.enter_async_context(
                open_carrier(config, store, holds, redis, peers=peers, clock=clock, telemetry=telemetry)
            )
            limiter = stack.enter_context(opened_limiter(config, redis, clock))
            doors_tls = server_tls(config)
            sections = Sections(config, config_path, partial(load, config_path, os.environ))
            means = Means(clock, telemetry, run_dir_of(config), slot)
            credentials = credentials_of(config, means, sections)
            senders = {name: credential.sender for name, credential in credentials.items()}
            rates = rate_gates(config, limiter, clock, telemetry)
            limits = DoorLimits(bounds_of(config), for_doors(config, limiter, clock), clock, telemetry)
            crew = _crew(config, carrier, devices, senders, rates, clock, telemetry, PoisonWatch(board, slot))
            shared = SqlOwnership(store.shards, store.work)
            place = Place(slot, board, store.peers or peers, shared, carrier.fault, config.does())
            chores = _chores(config, store, carrier, devices, dedup)
            worker = Worker(crew, place, chores, config.limits.backlog)
            carrier.listen(worker.wake)
            intake = _intake(config, carrier, dedup, crew, worker)
            streams = stream_doors(config, intake, slot, telemetry, limits)
            held = held_by(sections, credentials if worker.delivers else {}, doors_tls)
            keyring = Keyring(held, clock, telemetry, warns=slot == 0)
            heed_hangups(keyring.hurry)
            tokens = tokens_of(config, clock, telemetry)
            readiness = partial(_readiness, carrier, crew, worker, board, streams, keyring)
            api = _api(
                config,
                store,
                carrier,
                chores,
                crew,
                worker,
                tokens=tokens,
                intake=intake,
                readiness=readiness,
                limits=limits,
                metrics=metrics,
            )
            doors: list[Lifecycle] = [
                keyring,
                tokens,
                api.callers,
                *doors_of(config, api, listener, doors_tls),
                *streams.values(),
            ]
            share_the_interpreter()
            await worker.run(Together(doors), stop, on_ready, config.drain_timeout_s)
    finally:
        await store.close()
        telemetry.event(Event.PROCESS_STOPPED)


def _chores(config: Config, store: Store, carrier: Carrier, devices: Devices, dedup: Dedup) -> Chores:
    keep_days = config.retention.notifications_days
    kept = store.journal, dedup, store.retention, store.bulk, store.erasures, store.audit
    return Chores(carrier.work, devices, *kept, keep_days, config.retention.audit_days, carrier.record)


def _crew(
    config: Config,
    carrier: Carrier,
    devices: Devices,
    senders: Mapping[CredentialId, Sender],
    rates: Mapping[CredentialId, RateGate],
    clock: Clock,
    telemetry: Telemetry,
    poison: PoisonWatch,
) -> Crew:
    capabilities = {name: sender.capabilities for name, sender in senders.items()}
    budgets = {lane: chosen.in_flight for lane, chosen in config.lanes.items() if chosen.in_flight is not None}
    gates = Gates(capabilities, budgets, BreakerRules(), telemetry, rates)
    return Crew(
        work=carrier.work,
        devices=devices,
        senders=senders,
        channels=channels_of(installed()),
        credentials={
            app: {sender.capabilities.channel: name for name, sender in senders.items() if name.startswith(f"{app}/")}
            for app in config.apps
        },
        rules={app: chosen.retry for app, chosen in config.apps.items()},
        gates=gates,
        settler=Settler(carrier.work, telemetry, HELD_OUTCOMES_LIMIT, gates.parked),
        poison=poison,
        clock=clock,
        jitter=random.random,
        telemetry=telemetry,
        routes=carrier.routes,
    )


def _intake(config: Config, carrier: Carrier, dedup: Dedup, crew: Crew, worker: Worker) -> Intake:
    return Intake(
        work=carrier.work,
        dedup=dedup,
        clock=crew.clock,
        ids=RandomIds(crew.clock),
        telemetry=crew.telemetry,
        defaults={app: chosen.defaults for app, chosen in config.apps.items()},
        is_full=worker.is_full,
        announce=worker.wake,
        checks={app: content_checks(chosen, installed()) for app, chosen in config.apps.items()},
    )


def _api(  # noqa: PLR0913 - one of each that the API speaks of
    config: Config,
    store: Store,
    carrier: Carrier,
    chores: Chores,
    crew: Crew,
    worker: Worker,
    *,
    tokens: Tokens,
    intake: Intake,
    readiness: Callable[[], Readiness],
    limits: DoorLimits,
    metrics: PrometheusSink,
) -> Api:
    plugins = installed()
    defaults, ids, checks = intake.defaults, intake.ids, intake.checks
    keys, clock = carrier.keys or store.keys, crew.clock
    return Api(
        intake=intake,
        views=carrier.views,
        devices=chores.devices,
        callers=Authenticator(keys, tokens, config.apps, clock, config.rest.key_cache_s, crew.telemetry),
        keys=keys,
        bulk=BulkIntake(
            store.bulk, store.bulk_views, crew.clock, ids, defaults, checks, walks_registry=config.devices == "store"
        ),
        opt_outs=store.opt_outs,
        erasures=store.erasures,
        audit=store.audit,
        marks=store.marks,
        outbox=store.outbox,
        explain=Explain(chores.devices, crew.senders, crew.channels, defaults, crew.clock, ids, checks),
        clock=crew.clock,
        telemetry=crew.telemetry,
        device_caps={app: chosen.device_cap for app, chosen in config.apps.items()},
        readiness=readiness,
        metrics=metrics.render,
        draining=lambda: worker.is_draining,
        settings=config.rest,
        limits=limits,
        operating_only=Role.API not in config.does(),
        channels=tuple(plugin.channel for plugin in plugins),
        platforms=tuple(sorted(crew.channels)),
        device_checks={app: registration_checks(app, chosen, plugins) for app, chosen in config.apps.items()},
    )


def _readiness(
    carrier: Carrier,
    crew: Crew,
    worker: Worker,
    board: Board,
    streams: Mapping[SourceName, StreamDoor],
    keyring: Keyring,
) -> Readiness:
    """What this worker knows of the store and the providers, and what the board says of every worker."""
    now_s = crew.clock.monotonic()
    checks = {"store": carrier.fault() or "ok"}
    for presence in board.present():
        silent = now_s - presence.heartbeat_s > SILENCE_S / 2
        checks[f"worker {presence.slot}"] = "silent" if silent else _WORDS[presence.state]
    is_ready = all(word == "ok" for word in checks.values()) and carrier.takes_requests()
    checks |= carrier.says()
    if worker.nobody_delivers:
        checks["delivery"] = "no worker: what is accepted waits"
    checks |= {f"source {name}": door.fault or "ok" for name, door in streams.items()}
    for name, sender in crew.senders.items():
        health = sender.health()
        checks[f"provider {name}"] = "ok" if health.ok else health.why or "not ok"
    checks |= {f"credential {name}": why for name, why in keyring.says().items()}
    return Readiness(is_ready, checks)


_WORDS = {
    WorkerState.GONE: "gone",
    WorkerState.STARTING: "starting",
    WorkerState.READY: "ok",
    WorkerState.DEGRADED: "degraded",
    WorkerState.DRAINING: "draining",
}
