"""The whole way as a worker of Celery and Redis does it, and as Waypost does: the same users, the same gateway."""

from __future__ import annotations

import base64
import json
import os
import sqlite3
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks import environments
from benchmarks.end_to_end import SIZE, USERS, burst
from benchmarks.peers import HERE
from benchmarks.programs import command, in_rust
from waypost.bench.programs import GatewayProgram, cpu_s, gateway, reached
from waypost.bench.registry import DEVICES_PER_USER, devices
from waypost.bench.rows import Row, row
from waypost.bench.stack import running
from waypost.lab import credentials

COUNT = 600
WORKERS = 2
LATENCIES_MS = (0, 50)


def run() -> list[Row]:
    """Two worker processes each, at once and with gateways that take their time."""
    environments.install()
    return [each for latency_ms in LATENCIES_MS for each in _compared(latency_ms)]


def _compared(latency_ms: int) -> list[Row]:
    late = dict.fromkeys(("apns", "fcm", "webpush"), latency_ms)
    with running(in_rust(), WORKERS, USERS) as stack:
        stack.gateway.set_latency(**late)
        burst(stack, 0, SIZE.warm_up)
        ours = burst(stack, SIZE.warm_up, SIZE.notifications // 2)
    with tempfile.TemporaryDirectory(prefix="waypost-bench-") as name:
        folder = Path(name)
        credentials.write_missing(folder, "bench")
        with gateway(in_rust(), folder / credentials.SERVER) as server:
            server.set_latency(**late)
            us, per_s = _measured(folder, server)
    what = f"answered after {latency_ms} ms, Celery and Redis"
    against = f"Waypost {ours.own_us:.0f}", f"Waypost {ours.per_s:.0f}"
    return [
        row("celery", f"{what}: CPU a delivery", us, "µs", against[0], us / ours.own_us),
        row("celery", f"{what}: deliveries a second", per_s, "1/s", against[1], per_s / ours.per_s),
    ]


def _measured(folder: Path, server: GatewayProgram) -> tuple[float, float]:
    """CPU µs of a delivery in worker and Redis, and deliveries a second between the first and the last tenth."""
    order = folder / "order.json"
    socket = folder / "redis.sock"
    wanted: dict[str, Any] = {"url": server.url, "ca_file": str(folder / credentials.CA)}
    wanted |= {"count": COUNT, "users": COUNT}
    wanted |= {"redis": f"redis+socket://{socket}", "database": str(folder / "team.db")}
    order.write_text(json.dumps(wanted | {"vapid_key_file": str(folder / credentials.VAPID_KEY)}))
    _store(folder / "team.db", server.url)
    environment = os.environ | {"PEERS_ORDER": str(order), "PYTHONPATH": str(HERE)}
    environment["REQUESTS_CA_BUNDLE"] = wanted["ca_file"]
    with _child([command("redis-server"), "--port", "0", "--unixsocket", str(socket), "--save", ""], folder) as redis:
        while not socket.exists():
            time.sleep(0.05)
        subprocess.run([environments.PYTHON, HERE / "celery_peer.py"], check=True, env=environment)
        worker = [str(environments.PYTHON), "-m", "celery", "-A", "celery_peer", "worker", "-c", str(WORKERS)]
        with _child([*worker, "--loglevel=ERROR"], folder, environment) as worker_pid:
            points = []
            for share in (0.1, 0.9):
                total = reached(server, int(COUNT * DEVICES_PER_USER * share))
                points.append((time.perf_counter(), total, cpu_s(redis) + _family_s(worker_pid)))
    (began, first, before_s), (ended, last, after_s) = points
    return (after_s - before_s) / (last - first) * 1e6, (last - first) / (ended - began)


@contextmanager
def _child(arguments: list[str], folder: Path, environment: dict[str, str] | None = None) -> Iterator[int]:
    process = subprocess.Popen(arguments, cwd=folder, env=environment, stdout=subprocess.DEVNULL)
    try:
        yield process.pid
    finally:
        process.terminate()
        process.wait()


def _family_s(pid: int) -> float:
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return sum(cpu_s(each) for each in (pid, *map(int, children)))


def _store(database: Path, url: str) -> None:
    """The team's own tables: devices by user, and receipts."""
    connection = sqlite3.connect(database)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("CREATE TABLE device (user_id TEXT, platform TEXT, token TEXT, keys TEXT)")
    connection.execute("CREATE INDEX device_user ON device (user_id)")
    connection.execute("CREATE TABLE receipt (mark TEXT, token TEXT, status INTEGER)")
    rows = ((each["user_id"], each["platform"], each["token"], _keys(each)) for each in devices(url, COUNT))
    connection.executemany("INSERT INTO device VALUES (?, ?, ?, ?)", rows)
    connection.commit()
    connection.close()


def _keys(device: dict[str, Any]) -> str | None:
    if device["p256dh"] is None:
        return None
    return json.dumps({name: base64.urlsafe_b64encode(device[name]).decode() for name in ("p256dh", "auth")})
