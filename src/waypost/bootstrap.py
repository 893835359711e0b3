"""The composition root: the only module that names adapters, and what a worker process runs."""

from __future__ import annotations

import asyncio
import errno
import os
import random
import signal
import socket
import sys
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import uvloop

from waypost.adapters.apns.payload import faults as apns_faults
from waypost.adapters.apns.sender import ApnsSender
from waypost.adapters.fcm.payload import faults as fcm_faults
from waypost.adapters.fcm.sender import FcmSender
from waypost.adapters.prometheus.sink import PrometheusSink, start_over, worker_died
from waypost.adapters.sql.connection import SAFE_WITH_MANY_WORKERS, database_path, dbapi, run_directory
from waypost.adapters.sql.database import prepare
from waypost.adapters.sql.group_commit import StoreState
from waypost.adapters.sql.sharing import SqlOwnership
from waypost.adapters.sql.store import Store, open_store
from waypost.adapters.structlog.sink import StructlogSink
from waypost.adapters.webpush.payload import faults as webpush_faults
from waypost.adapters.webpush.sender import WebPushSender
from waypost.config import AppSettings, Config, Listen, load
from waypost.domain.breaker import BreakerRules
from waypost.domain.errors import ConfigurationError, WaypostError
from waypost.domain.ids import CredentialId
from waypost.entrypoints.rest.api import Api, Readiness
from waypost.entrypoints.rest.app import build_app
from waypost.entrypoints.rest.server import ApiServer
from waypost.entrypoints.rest.serving import serve_options
from waypost.entrypoints.rest.settings import RestSettings
from waypost.pipeline.explain import Explain
from waypost.pipeline.intake import ContentCheck, Intake
from waypost.ports.clock import Clock
from waypost.ports.peers import Peers
from waypost.ports.sender import Sender
from waypost.runtime.board import Board, WorkerState
from waypost.runtime.clock import RandomIds, SystemClock
from waypost.runtime.gates import Gates
from waypost.runtime.lane import Crew
from waypost.runtime.peers import NoPeers, SocketPeers
from waypost.runtime.poison import PoisonWatch
from waypost.runtime.settler import Settler
from waypost.runtime.single import ServeLock
from waypost.runtime.supervisor import (
    EX_CONFIG,
    SILENCE_S,
    Inheritance,
    Supervisor,
    bury_predecessors,
    inheritance,
    worker_command,
)
from waypost.runtime.worker import Place, Worker
from waypost.telemetry import Combined, Event, Silent, Telemetry

HELD_OUTCOMES_LIMIT = 20_000
"""Outcomes a worker holds in memory before it leases nothing more."""

PORT_PATIENCE_S = 3.0
"""How long a taken port may take to become free."""

Announce = Callable[[str], None]
"""Told the API's URL once it answers."""


def serve(config: Config, config_path: Path | None, *, announce: Announce) -> int:
    """Serve until SIGTERM or SIGINT: alone, or as the supervisor of ``config.workers``; the exit status.

    ConfigurationError if the configuration cannot be used, Unavailable if the store cannot.
    """
    run_dir = _run_dir(config)
    log = _log(config)
    with ServeLock(run_dir / "serve.lock"):
        bury_predecessors(run_dir / "board")
        listener = _listen(config.listen)
        host, port = listener.getsockname()[:2]
        url = f"http://{Listen(host, port)}"
        log.event(Event.PROCESS_STARTING, workers=config.workers, pid=os.getpid())
        start_over(_metrics_dir(config))
        if config.workers == 1:
            board = Board(run_dir / "board")
            uvloop.run(_work(config, 0, board, NoPeers(), listener, lambda: announce(url)))
            return 0
        supervisor = Supervisor(
            worker_command(config_path),
            config.workers,
            listener,
            run_dir / "board",
            log,
            on_death=partial(worker_died, _metrics_dir(config)),
        )
        return supervisor.run(lambda: announce(url), config.drain_timeout_s)


def worker_main(config_path: Path | None, given: Inheritance) -> int:
    """Run one worker of a supervisor; the exit status."""
    try:
        config = load(config_path, os.environ)
        uvloop.run(_work_under_supervisor(config, given))
    except ConfigurationError as wrong:
        print(f"configuration: {wrong}", file=sys.stderr)
        return EX_CONFIG
    except WaypostError as error:
        print(f"{error.code}: {error}", file=sys.stderr)
        return 1
    return 0


@asynccontextmanager
async def open_admin_store(config: Config) -> AsyncIterator[Store]:
    """The store as the command line uses it: same adapter, same write lock, no shard owned."""
    store = await open_store(config.store, clock=SystemClock(), peers=None, telemetry=_log(config))
    try:
        yield store
    finally:
        await store.close()


def migrate_store(config: Config) -> tuple[str | None, str]:
    """Bring the store to today's schema; its revisions before and after. StorageBroken where it is a newer one."""
    return prepare(config.store)


def store_engine(config: Config) -> str:
    """Which library opens the store; ConfigurationError where it cannot serve what is configured."""
    database_path(config.store.url)
    engine = f"SQLite {dbapi.sqlite_version}"
    if config.workers > 1 and not SAFE_WITH_MANY_WORKERS:
        raise ConfigurationError("workers", f"{engine} can corrupt a log that several processes share; set it to 1")
    return engine


async def try_credentials(config: Config) -> dict[CredentialId, str | None]:
    """Read every credential as a worker does, and say of each what is wrong with it; nothing is sent."""
    found: dict[CredentialId, str | None] = {}
    for name, sender in _senders(config, SystemClock(), Silent()).items():
        found[name] = None
        try:
            await sender.start()
        except ConfigurationError as wrong:
            found[name] = str(wrong)
        finally:
            await sender.stop(0.0)
    return found


async def _work_under_supervisor(config: Config, given: Inheritance) -> None:
    """Work until told to stop, or until the supervisor is gone."""
    asyncio.get_running_loop().add_reader(given.life_fd, os._exit, 1)
    outboxes = {slot: socket.socket(fileno=fd) for slot, fd in given.outbox_fds.items()}
    peers = SocketPeers(given.slot, socket.socket(fileno=given.inbox_fd), outboxes)
    peers.start()
    board = Board(_run_dir(config) / "board")
    listener = socket.socket(fileno=given.listen_fd)
    await _work(config, given.slot, board, peers, listener, lambda: None)


async def _work(
    config: Config,
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
    metrics = PrometheusSink(_metrics_dir(config))
    telemetry = Combined(_log(config), metrics)
    store = await open_store(config.store, clock=clock, peers=peers, telemetry=telemetry)
    try:
        senders = _senders(config, clock, telemetry)
        crew = _crew(config, store, senders, clock, telemetry, PoisonWatch(board, slot))
        place = Place(slot, board, peers, SqlOwnership(store.shards, store.work), partial(_fault, store))
        worker = Worker(crew, place, store.journal, config.limits.backlog)
        app = build_app(_api(config, store, crew, worker, board, metrics))
        server = ApiServer(app, listener, serve_options(RestSettings()))
        await worker.run(server, stop, on_ready, config.drain_timeout_s)
    finally:
        await store.close()
        telemetry.event(Event.PROCESS_STOPPED)


def _crew(
    config: Config,
    store: Store,
    senders: Mapping[CredentialId, Sender],
    clock: Clock,
    telemetry: Telemetry,
    poison: PoisonWatch,
) -> Crew:
    capacities = {name: sender.capabilities.max_in_flight for name, sender in senders.items()}
    budgets = {lane: chosen.in_flight for lane, chosen in config.lanes.items() if chosen.in_flight is not None}
    gates = Gates(capacities, budgets, BreakerRules(), telemetry)
    return Crew(
        work=store.work,
        devices=store.devices,
        senders=senders,
        credentials={
            app: {sender.capabilities.channel: name for name, sender in senders.items() if name.startswith(f"{app}/")}
            for app in config.apps
        },
        rules={app: chosen.retry for app, chosen in config.apps.items()},
        gates=gates,
        settler=Settler(store.work, telemetry, HELD_OUTCOMES_LIMIT, gates.parked),
        poison=poison,
        clock=clock,
        jitter=random.random,
        telemetry=telemetry,
    )


def _senders(config: Config, clock: Clock, telemetry: Telemetry) -> dict[CredentialId, Sender]:
    found: list[Sender] = []
    for app, chosen in config.apps.items():
        if chosen.apns is not None:
            found.append(ApnsSender(app, chosen.apns, clock=clock, telemetry=telemetry))
        if chosen.fcm is not None:
            found.append(FcmSender(app, chosen.fcm, clock=clock, telemetry=telemetry))
        if chosen.webpush is not None:
            found.append(WebPushSender(app, chosen.webpush, clock=clock, telemetry=telemetry))
    return {sender.credential: sender for sender in found}


def _checks(app: AppSettings) -> list[ContentCheck]:
    offered = ((app.apns, apns_faults), (app.fcm, fcm_faults), (app.webpush, webpush_faults))
    return [check for credential, check in offered if credential is not None]


def _api(config: Config, store: Store, crew: Crew, worker: Worker, board: Board, metrics: PrometheusSink) -> Api:
    defaults = {app: chosen.defaults for app, chosen in config.apps.items()}
    ids = RandomIds(crew.clock)
    return Api(
        intake=Intake(
            work=store.work,
            views=store.views,
            clock=crew.clock,
            ids=ids,
            telemetry=crew.telemetry,
            defaults=defaults,
            is_full=worker.is_full,
            announce=worker.wake,
            checks={app: _checks(chosen) for app, chosen in config.apps.items()},
        ),
        views=store.views,
        devices=store.devices,
        keys=store.keys,
        explain=Explain(store.devices, crew.senders, defaults, crew.clock, ids),
        clock=crew.clock,
        telemetry=crew.telemetry,
        device_caps={app: chosen.device_cap for app, chosen in config.apps.items()},
        readiness=lambda: _readiness(store, crew, board),
        metrics=metrics.render,
        draining=lambda: worker.is_draining,
    )


def _readiness(store: Store, crew: Crew, board: Board) -> Readiness:
    """What this worker knows of the store and the providers, and what the board says of every worker."""
    now_s = crew.clock.monotonic()
    checks = {"store": _fault(store) or "ok"}
    for presence in board.present():
        silent = now_s - presence.heartbeat_s > SILENCE_S / 2
        checks[f"worker {presence.slot}"] = "silent" if silent else _WORDS[presence.state]
    is_ready = all(word == "ok" for word in checks.values())
    for name, sender in crew.senders.items():
        health = sender.health()
        checks[f"provider {name}"] = "ok" if health.ok else health.why or "not ok"
    return Readiness(is_ready, checks)


def _fault(store: Store) -> str | None:
    state = store.database.state
    return None if state is StoreState.OK else state.value


_WORDS = {
    WorkerState.GONE: "gone",
    WorkerState.STARTING: "starting",
    WorkerState.READY: "ok",
    WorkerState.DEGRADED: "degraded",
    WorkerState.DRAINING: "draining",
}


def _log(config: Config) -> StructlogSink:
    return StructlogSink(sys.stderr.buffer, config.log.level, service="push-worker")


def _metrics_dir(config: Config) -> Path:
    return _run_dir(config) / "metrics"


def _run_dir(config: Config) -> Path:
    return run_directory(database_path(config.store.url))


def _listen(listen: Listen) -> socket.socket:
    """Listen; a port that is taken may be held by a worker that is just ending with its dead supervisor."""
    patient_until_s = time.monotonic() + PORT_PATIENCE_S
    while True:
        try:
            return _listen_now(listen)
        except OSError as failed:
            if failed.errno != errno.EADDRINUSE or time.monotonic() > patient_until_s:
                raise ConfigurationError("listen", f"cannot listen on {listen}: {failed.strerror}") from failed
        time.sleep(0.05)


def _listen_now(listen: Listen) -> socket.socket:
    family = socket.AF_INET6 if ":" in listen.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((listen.host, listen.port))
    except OSError:
        listener.close()
        raise
    listener.listen(2048)
    listener.set_inheritable(False)
    return listener


if __name__ == "__main__":
    inherited = inheritance()
    if inherited is None:
        sys.exit("this is how the supervisor starts a worker; use: waypost serve")
    sys.exit(worker_main(Path(sys.argv[1]) if len(sys.argv) > 1 else None, inherited))
