"""Waypost and its lab as child processes, and what their CPU time was."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

TICK_S = 1 / os.sysconf("SC_CLK_TCK")


class Stack:
    """A lab and a serving Waypost in a folder of their own."""

    def __init__(self, lab: dict[str, Any], serve: dict[str, Any], key: str, pids: tuple[int, int]) -> None:
        self.lab = lab
        self.url: str = serve["url"]
        self.key = key
        self.lab_pid, self.serve_pid = pids

    def cpu_s(self) -> tuple[float, float]:
        """CPU seconds so far: all processes of Waypost, and the lab's."""
        return sum(_cpu_s(pid) for pid in _family(self.serve_pid)), _cpu_s(self.lab_pid)


@contextmanager
def running(workers: int) -> Iterator[Stack]:
    """Start both on free ports; they end with the block."""
    with tempfile.TemporaryDirectory(prefix="waypost-bench-") as name:
        folder = Path(name)
        ports = [f"--{each}-port=0" for each in ("apns", "fcm", "webpush", "oauth", "admin")]
        lab_process, lab = _start(folder, ["lab", "--directory", str(folder / "lab"), *ports])
        try:
            (folder / "waypost.yaml").write_text(yaml.safe_dump(_configuration(folder / "lab", lab, workers)))
            key = _key(folder)
            serve_process, serve = _start(folder, ["serve", "--config", str(folder / "waypost.yaml")])
            try:
                yield Stack(lab, serve, key, (lab_process.pid, serve_process.pid))
            finally:
                _end(serve_process)
        finally:
            _end(lab_process)


def _key(folder: Path) -> str:
    command = [sys.executable, "-m", "waypost.cli", "keys", "create", "--app", "demo", "--caller", "bench"]
    made = subprocess.run(
        [*command, "--config", str(folder / "waypost.yaml")], check=True, capture_output=True, text=True
    )
    return made.stdout.strip().splitlines()[-1].strip()


def _configuration(files: Path, lab: dict[str, Any], workers: int) -> dict[str, Any]:
    ca_file = str(files / "ca.pem")
    apns: dict[str, Any] = {"key_file": str(files / "AuthKey.p8"), "key_id": "ABCDE12345", "team_id": "FGHIJ67890"}
    apns |= {"topic": "com.example.demo", "endpoint": lab["apns"], "ca_file": ca_file}
    fcm: dict[str, Any] = {"service_account_file": str(files / "fcm.json"), "endpoint": lab["fcm"], "ca_file": ca_file}
    fcm |= {"quota_per_minute": 60_000_000, "quota_ramp_s": 0}  # what is measured is Waypost, not Google's allowance
    push: dict[str, Any] = {"vapid_private_key_file": str(files / "vapid.pem"), "subject": "mailto:ops@example.com"}
    push |= {"allow_endpoints": [lab["webpush"]], "ca_file": ca_file}
    return {
        "store": f"sqlite:///{files.parent / 'waypost.db'}",
        "listen": "127.0.0.1:0",
        "workers": workers,
        "log": {"level": "warning"},
        "apps": {"demo": {"apns": apns, "fcm": fcm, "webpush": push}},
    }


def _start(folder: Path, arguments: list[str]) -> tuple[subprocess.Popen[str], dict[str, Any]]:
    with (folder / f"{arguments[0]}.log").open("w") as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", "waypost.cli", *arguments, "--json"],
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        raise RuntimeError(f"{arguments[0]}: {(folder / f'{arguments[0]}.log').read_text()[-2000:]}")
    return process, json.loads(line)


def _end(process: subprocess.Popen[str]) -> None:
    process.terminate()
    process.wait()
    if process.stdout is not None:
        process.stdout.close()


def _family(pid: int) -> list[int]:
    """A process and its children."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid, *map(int, children)]


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * TICK_S


async def until(condition: Any, pause_s: float = 0.05, timeout_s: float = 120.0) -> None:
    """Ask again and again until an awaitable condition holds."""
    async with asyncio.timeout(timeout_s):
        while not await condition():  # noqa: ASYNC110 - asks another process, which tells nobody
            await asyncio.sleep(pause_s)
