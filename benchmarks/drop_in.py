"""The drop-in for the notifications service beside a plain loop over firebase-admin, on the same gateway and Redis.

The drop-in does all of its work: for each job a row of the log, opened, then closed, and the tokens from PostgreSQL.
The loop does the least that such a service could: it reads the stream in batches, sends each batch with
``send_each_async`` and acknowledges it; it has no database.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import psycopg
import redis
import uvloop

from benchmarks import environments
from benchmarks.programs import in_rust
from benchmarks.stores import spent_s, up
from scripts.services.postgres import Postgres
from scripts.services.redis import Redis
from waypost.adapters.jsonlines.sink import JsonLinesSink, standard_error
from waypost.bench.programs import GatewayProgram, cpu_s, gateway
from waypost.bench.rows import Row, row
from waypost.bootstrap.drop_in import consume
from waypost.config.drop_in import drop_in
from waypost.lab import credentials
from waypost.telemetry import Level

JOBS = int(os.environ.get("JOBS", "10000"))
PEER_JOBS = 1_000
WARM_UP = 500
USERS = 1_000
ROUNDS = 3
BATCH = 500
STREAM, GROUP = "stream.notifications.jobs", "notifications-service"
HERE = Path(__file__).parent / "peer_programs"
_TOKENS = """\
CREATE TABLE public.device_token (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), "userId" text, token text);
CREATE INDEX ON public.device_token ("userId");
INSERT INTO public.device_token ("userId", token)
    SELECT 'user-' || n, 'live' || n || ':APA91b' || repeat('x', 120) FROM generate_series(0, 999) AS n
"""


def run() -> list[Row]:
    """Rounds in turn; the medians."""
    environments.install()
    ours: list[dict[str, float]] = []
    theirs: list[dict[str, float]] = []
    with tempfile.TemporaryDirectory(prefix="waypost-bench-") as name, ExitStack() as exits:
        folder = Path(name)
        folder.chmod(0o755)  # PostgreSQL runs as a user of its own
        server = exits.enter_context(up(Redis, folder / "redis"))
        database = exits.enter_context(up(Postgres, folder / "postgres"))
        with psycopg.connect(database.url, autocommit=True) as connection:
            connection.execute(_TOKENS.encode())
        credentials.write_missing(folder, "bench")
        other_side = exits.enter_context(gateway(in_rust(), folder / credentials.SERVER))
        credentials.write_service_account(folder, "bench", f"{other_side.url}/token")
        client: Any = exits.enter_context(redis.Redis.from_url(server.url))
        client.xgroup_create(STREAM, GROUP, 0, mkstream=True)
        for _ in range(ROUNDS):
            with _serving(folder, other_side, server.url, database.url) as pid:
                _worked_off(client, WARM_UP)
                before_s, database_s = cpu_s(pid), spent_s(database)
                seconds = _worked_off(client, JOBS)
                spent = {"own_us": cpu_s(pid) - before_s, "database_us": spent_s(database) - database_s}
                ours.append({name: each / JOBS * 1e6 for name, each in spent.items()} | {"per_s": JOBS / seconds})
            theirs.append(_peer(folder, other_side, client, server.url))
    return list(_rows(_median(ours), _median(theirs)))


def _rows(ours: dict[str, float], theirs: dict[str, float]) -> Iterator[Row]:
    per_s, own_us = theirs["per_s"], theirs["own_us"]
    yield row(
        "drop-in",
        "jobs a second",
        ours["per_s"],
        "1/s",
        f"a loop over firebase-admin {per_s:.0f}",
        ours["per_s"] / per_s,
    )
    yield row(
        "drop-in",
        "CPU a job",
        ours["own_us"],
        "µs",
        f"a loop over firebase-admin {own_us:.0f}",
        ours["own_us"] / own_us,
    )
    yield row("drop-in", "PostgreSQL's CPU a job", ours["database_us"], "µs")


def _median(rounds: list[dict[str, float]]) -> dict[str, float]:
    return {name: statistics.median(each[name] for each in rounds) for name in rounds[0]}


@contextmanager
def _serving(folder: Path, other_side: GatewayProgram, redis_url: str, database_url: str) -> Iterator[int]:
    environment = {
        "REDIS_URL": redis_url,
        "DATABASE_URL": database_url,
        "GOOGLE_APPLICATION_CREDENTIALS": str(folder / credentials.SERVICE_ACCOUNT),
        "FCM_ENDPOINT": other_side.url,
        "FCM_CA_FILE": str(folder / credentials.CA),
    }
    with (folder / "drop-in.log").open("a") as errors:
        process = subprocess.Popen([sys.executable, "-m", __name__], env=os.environ | environment, stderr=errors)
    try:
        yield process.pid
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()


def _worked_off(client: Any, count: int) -> float:
    """Seconds from when so many jobs are there until the last is acknowledged."""
    last = _told(client, count)
    began_s = time.perf_counter()
    while not _is_done(client, last):
        time.sleep(0.02)  # a stream tells nobody that it is at its end
    return time.perf_counter() - began_s


def _told(client: Any, count: int) -> bytes:
    pipeline = client.pipeline(transaction=True)
    for n in range(count):
        data = json.dumps({"mark": str(n)})
        job = {
            "userId": f"user-{n % USERS}",
            "title": "Your parcel is here",
            "body": f"Number {n}.",
            "channel": "orders",
        }
        pipeline.xadd(STREAM, job | {"data": data})
    last: bytes = pipeline.execute()[-1]
    return last


def _is_done(client: Any, last: bytes) -> bool:
    (group,) = client.xinfo_groups(STREAM)
    return bool(group["last-delivered-id"] == last and group["pending"] == 0)


def _peer(folder: Path, other_side: GatewayProgram, client: Any, redis_url: str) -> dict[str, float]:
    _told(client, PEER_JOBS + BATCH)
    order = folder / "order.json"
    wanted: dict[str, Any] = {"url": other_side.url, "ca_file": str(folder / credentials.CA), "redis": redis_url}
    wanted |= {"stream": STREAM, "group": GROUP, "count": PEER_JOBS + BATCH, "batch": BATCH}
    wanted |= {"service_account_file": str(folder / credentials.SERVICE_ACCOUNT)}
    order.write_text(json.dumps(wanted))
    trust = {"SSL_CERT_FILE": wanted["ca_file"], "REQUESTS_CA_BUNDLE": wanted["ca_file"]}
    said = subprocess.run(
        [environments.PYTHON, HERE / "firebase_stream_peer.py", order],
        env=os.environ | trust, capture_output=True, text=True, check=True,
    )  # fmt: skip
    seen = json.loads(said.stdout)
    return {"per_s": PEER_JOBS / seen["seconds"], "own_us": seen["cpu_s"] / PEER_JOBS * 1e6}


def _serve() -> None:
    """The drop-in as it is."""
    uvloop.run(_until_told(drop_in(os.environ)))


async def _until_told(settings: Any) -> None:
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    await consume(settings, JsonLinesSink(standard_error(), Level.WARNING), stop)


if __name__ == "__main__":
    _serve()
