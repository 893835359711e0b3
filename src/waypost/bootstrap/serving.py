"""Serving: alone, or as the supervisor of several workers."""

from __future__ import annotations

import errno
import os
import socket
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import uvloop

from waypost.adapters.prometheus.sink import start_over, worker_died
from waypost.bootstrap.places import log_of, metrics_dir, run_dir_of
from waypost.config import Config, Listen
from waypost.domain.errors import ConfigurationError
from waypost.runtime.board import Board
from waypost.runtime.peers import NoPeers
from waypost.runtime.single import ServeLock
from waypost.runtime.supervisor import (
    Supervisor,
    bury_predecessors,
    worker_command,
)
from waypost.telemetry import Event

PORT_PATIENCE_S = 3.0
"""How long a taken port may take to become free."""

Announce = Callable[[str], None]
"""Told the API's URL once it answers."""


def serve(config: Config, config_path: Path | None, *, announce: Announce) -> None:
    """Serve until SIGTERM or SIGINT: alone, or as the supervisor of ``config.workers``.

    ConfigurationError if the configuration cannot be used, Unavailable if the store cannot.
    """
    run_dir = run_dir_of(config)
    log = log_of(config)
    with ServeLock(run_dir / "serve.lock"):
        bury_predecessors(run_dir / "board")
        listener = _listen(config.listen)
        host, port = listener.getsockname()[:2]
        url = f"http://{Listen(host, port)}"
        log.event(Event.PROCESS_STARTING, workers=config.workers, pid=os.getpid())
        start_over(metrics_dir(config))
        if config.workers == 1:
            from waypost.bootstrap.worker import work  # noqa: PLC0415 - a supervisor needs nothing of what a worker does

            board = Board(run_dir / "board")
            uvloop.run(work(config, 0, board, NoPeers(), listener, lambda: announce(url)))
            return
        supervisor = Supervisor(
            worker_command(config_path),
            config.workers,
            listener,
            run_dir / "board",
            log,
            on_death=partial(worker_died, metrics_dir(config)),
        )
        supervisor.run(lambda: announce(url), config.drain_timeout_s)


def _listen(listen: Listen) -> socket.socket:
    """Listen; a port that is taken may be held by a worker that is just ending with its dead supervisor."""
    patient_until_s = time.monotonic() + PORT_PATIENCE_S
    while True:
        try:
            return _listen_now(listen)
        except OSError as failed:
            if failed.errno != errno.EADDRINUSE or time.monotonic() > patient_until_s:
                raise ConfigurationError("listen", f"cannot listen on {listen}: {failed.strerror}") from failed
        time.sleep(0.05)  # the system does not tell when a port becomes free


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
