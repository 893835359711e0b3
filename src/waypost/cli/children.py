"""Child processes that are ended on every path out of a block."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, Self

import click

from waypost.runtime.python import MODULE

STOP_TIMEOUT_S = 30.0
"""How long a child may take to stop when asked, before it is killed."""


class Children:
    """The ``waypost`` commands started here, which print a ready line; SIGTERM and SIGHUP end them like Ctrl-C."""

    def __init__(self, logs: Path) -> None:
        self._logs = logs
        self._running: dict[str, subprocess.Popen[str]] = {}
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        for number in (signal.SIGTERM, signal.SIGHUP):
            self._before[number] = signal.signal(number, _leave)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number in (signal.SIGINT, *self._before):
            signal.signal(number, signal.SIG_IGN)  # a second Ctrl-C must not leave children behind
        for child in reversed(self._running.values()):  # each after those that need it
            child.terminate()
            try:
                child.wait(STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
            if child.stdout is not None:
                child.stdout.close()
        signal.signal(signal.SIGINT, signal.default_int_handler)
        for number, before in self._before.items():
            signal.signal(number, before)

    def start(self, name: str, arguments: Sequence[str], environ: Mapping[str, str]) -> dict[str, Any]:
        """Start ``waypost ARGUMENTS`` and give what its ready line says; its log is NAME.log."""
        log = self._logs / f"{name}.log"
        with log.open("w") as errors:
            child = subprocess.Popen(  # noqa: S603 - our own interpreter and module
                [*MODULE, "waypost.cli", *arguments, "--json"],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env=dict(environ),
            )  # fmt: skip - one thing a line would hide the call
        self._running[name] = child
        assert child.stdout is not None
        line = child.stdout.readline()  # the end of the output, if it dies first
        if not line:
            last = log.read_text(errors="replace").strip().splitlines()[-3:]
            raise click.ClickException(f"{name} did not start: {' / '.join(last) or 'it said nothing'}")
        ready: dict[str, Any] = json.loads(line)
        return ready

    def wait(self) -> None:
        """Wait until a child ends by itself, which is a failure; Ctrl-C is how this is meant to end."""
        pid, status = os.wait()
        names = {child.pid: name for name, child in self._running.items()}
        raise click.ClickException(f"{names.get(pid, pid)} ended with {os.waitstatus_to_exitcode(status)}")


def _leave(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt
