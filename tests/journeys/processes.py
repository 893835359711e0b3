"""Processes of this machine: started, waited for until they are ready, looked at and killed."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

START_S = 240.0
"""For a process to be ready: most of it is the interpreter's own work, which a busy machine takes its time for."""


async def started(command: list[str], log: Path, python_path: Path | None = None) -> tuple[subprocess.Popen[str], Any]:
    """Start *command* and read its ready line; its stderr is added to *log*."""
    process = _spawned(command, log, python_path)
    assert process.stdout is not None
    async with asyncio.timeout(START_S):
        line = await asyncio.to_thread(process.stdout.readline)
    if not line:
        killed(process)
        raise AssertionError(f"{command[2]} did not start:\n{_end_of(log)}")
    return process, json.loads(line)


def _spawned(command: list[str], log: Path, python_path: Path | None) -> subprocess.Popen[str]:
    with log.open("a") as errors:
        environment = environment_of_a_service(python_path)
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True, env=environment)


def _end_of(log: Path) -> str:
    return log.read_text()[-2000:]


def environment_of_a_service(python_path: Path | None) -> Mapping[str, str]:
    """Ours, without what would configure a service."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("WAYPOST_")}
    if python_path is not None:
        kept["PYTHONPATH"] = os.pathsep.join([str(python_path), *filter(None, [kept.get("PYTHONPATH")])])
    return kept


def killed(process: subprocess.Popen[str] | None) -> None:
    if process is None:
        return
    process.kill()
    process.wait()
    if process.stdout is not None:
        process.stdout.close()


def state_of(pid: int) -> str:
    """As in proc(5); X is gone."""
    return _stat(pid)[0]


def parent_of(pid: int) -> int:
    return int(_stat(pid)[1])


def _stat(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ["X", "0"]
