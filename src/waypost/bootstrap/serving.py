"""Serving: alone, or as the supervisor of several workers."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import msgspec
import uvloop

from waypost.adapters.prometheus.sink import start_over, worker_died
from waypost.bootstrap.dashboard import prepare_dashboard
from waypost.bootstrap.listening import address_of, allow_open_files, listening, reserved
from waypost.bootstrap.opening import require
from waypost.bootstrap.paths import log_of, metrics_dir, run_dir_of
from waypost.config import Config
from waypost.runtime.instance_lock import ServeLock
from waypost.runtime.peers import NoPeers
from waypost.runtime.roles import Role
from waypost.runtime.supervisor import (
    Supervisor,
    bury_predecessors,
    worker_command,
)
from waypost.runtime.worker_slots import WorkerSlots
from waypost.telemetry import Event

Announce = Callable[[str, str | None], None]
"""Told the API's URL once it answers, and where gRPC does if it does."""


def serve(config: Config, config_path: Path | None, *, announce: Announce) -> None:
    """Serve until SIGTERM or SIGINT: alone, or as the supervisor of ``config.workers``.

    ConfigurationError if the configuration cannot be used, Unavailable if the store cannot.
    """
    require(config)
    run_dir = run_dir_of(config)
    log = log_of(config)
    with ServeLock(run_dir / "serve.lock"), ExitStack() as held:
        bury_predecessors(run_dir / "worker_slots")
        allow_open_files()
        listener = listening(config.listen)
        url = f"{'http' if config.rest.tls is None else 'https'}://{address_of(listener)}"
        config, grpc = _grpc_reserved(config, held)
        config = _operating_reserved(config, held)
        prepare_dashboard(config)
        log.event(Event.PROCESS_STARTING, workers=config.workers, pid=os.getpid())
        start_over(metrics_dir(config))
        if config.workers == 1:
            from waypost.bootstrap.worker import work  # noqa: PLC0415 - a supervisor needs nothing of what a worker does

            worker_slots = WorkerSlots(run_dir / "worker_slots")
            uvloop.run(work(config, config_path, 0, worker_slots, NoPeers(), listener, lambda: announce(url, grpc)))
            return
        supervisor = Supervisor(
            worker_command(config_path),
            config.workers,
            listener,
            run_dir / "worker_slots",
            log,
            on_death=partial(worker_died, metrics_dir(config)),
            with_critical=config.has_critical_worker,
        )
        supervisor.run(lambda: announce(url, grpc), config.drain_timeout_s)


def _grpc_reserved(config: Config, held: ExitStack) -> tuple[Config, str | None]:
    """Reserve gRPC's port, and return the configuration that names it, also for the workers, and its address."""
    if config.grpc.listen is None or Role.API not in config.does():
        return config, None
    taken = address_of(held.enter_context(reserved("grpc.listen", config.grpc.listen)))
    os.environ["WAYPOST_GRPC__LISTEN"] = str(taken)
    return msgspec.structs.replace(config, grpc=msgspec.structs.replace(config.grpc, listen=taken)), str(taken)


def _operating_reserved(config: Config, held: ExitStack) -> Config:
    """Reserve the port of metrics and health, if they have their own, and return the configuration that names it."""
    if config.rest.operating_listen is None:
        return config
    taken = address_of(held.enter_context(reserved("rest.operating_listen", config.rest.operating_listen)))
    os.environ["WAYPOST_REST__OPERATING_LISTEN"] = str(taken)
    return msgspec.structs.replace(config, rest=msgspec.structs.replace(config.rest, operating_listen=taken))
