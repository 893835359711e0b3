"""The cost of taking reports of devices, from POST /v1/receipts to the rows that say so: many in a request."""

from __future__ import annotations

import http.client
import json
import os
import random
import secrets
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path

from benchmarks.stores import on_postgres
from waypost.bench.programs import OWN
from waypost.bench.registry import APP
from waypost.bench.rows import Row, row
from waypost.bench.stack import BenchStack, running, settled
from waypost.bench.stores import Base, Stands, connected, embedded
from waypost.domain.device_event import receipt_token
from waypost.domain.ids import AppId, NotificationId, format_id

NOTIFICATIONS = int(os.environ.get("NOTIFICATIONS", "8000"))
USERS = 4_000
WORKERS = 2
IN_A_REQUEST = 500
AT_ONCE = 8
WANTED_PER_S = 20_000
BUSY = 503
_KEY_FILE = "receipts.key"
_CORES = os.cpu_count() or 1
STANDS: dict[str, Stands] = {"SQLite": embedded, "PostgreSQL": on_postgres}
Said = dict[str, object]


def run() -> list[Row]:
    """On each store: every target sent to, `delivered` of it by its name, `opened` by its signed token, and again."""
    only = os.environ.get("STORE")
    return [each for name, stands in STANDS.items() if only in (None, name) for each in _on(name, stands)]


def _on(name: str, stands: Stands) -> list[Row]:
    secret = secrets.token_bytes(32)
    with running(OWN, WORKERS, USERS, web=False, stands=partial(_with_links, stands=stands, secret=secret)) as stack:
        before_s = stack.cpu_s()
        stack.load(batch=100, users=USERS, first=0, count=NOTIFICATIONS).result()
        settled(stack, NOTIFICATIONS)
        targets = list(_targets(stack))
        delivery_us = (stack.cpu_s() - before_s) / len(targets) * 1e6
        random.Random(7).shuffle(targets)
        by_name = [_named(*each) for each in targets]
        by_token = [_signed(secret, each[0], each[1]) for each in targets]
        rows = [row("receipts", f"{name}: Waypost's CPU of a delivery, before", delivery_us, "µs")]
        rows += _rows(stack, f"{name}: delivered, by name", by_name)
        rows += _rows(stack, f"{name}: opened, by token", by_token)
        return rows + _rows(stack, f"{name}: opened, said again", by_token)


def _rows(stack: BenchStack, what: str, said: Sequence[Said]) -> list[Row]:
    bodies = [
        json.dumps({"receipts": said[at : at + IN_A_REQUEST]}).encode() for at in range(0, len(said), IN_A_REQUEST)
    ]
    servers_s, own_s, all_s, began_s = stack.base.cpu_s(), stack.cpu_s(), _busy_s(), time.perf_counter()
    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(partial(_post, stack), [bodies[n::AT_ONCE] for n in range(AT_ONCE)]))
    lasted_s = time.perf_counter() - began_s
    own_us = (stack.cpu_s() - own_s) / len(said) * 1e6
    served_us = sum(after - servers_s[server] for server, after in stack.base.cpu_s().items()) / len(said) * 1e6
    others = (_busy_s() - all_s) / lasted_s / _CORES - (own_us + served_us) * len(said) / 1e6 / lasted_s / _CORES
    per_s = len(said) / lasted_s
    left = f"{others:.0%} of the cores were others'"
    rows = [
        row("receipts", f"{what}: a second", per_s, "1/s", f"{WANTED_PER_S:,} wanted; {left}", per_s / WANTED_PER_S),
        row("receipts", f"{what}: Waypost's CPU of one", own_us, "µs"),
    ]
    return rows + ([row("receipts", f"{what}: the server's", served_us, "µs")] if stack.base.servers else [])


def _post(stack: BenchStack, bodies: Sequence[bytes]) -> None:
    host = stack.url.removeprefix("http://")
    headers = {"authorization": f"Bearer {stack.key}", "content-type": "application/json"}
    connection = http.client.HTTPConnection(host)
    for body in bodies:
        status = BUSY
        while status == BUSY:  # as clients do, and at once: how often it is refused shows in what a second takes
            connection.request("POST", "/v1/receipts", body, headers)
            answer = connection.getresponse()
            status, results = answer.status, answer.read()
        if status != 200 or b"null" in results:
            raise RuntimeError(f"{status}: {results[:200]!r}")
    connection.close()


def _targets(stack: BenchStack) -> Iterator[tuple[NotificationId, int, str]]:
    """Yield the notification, the number and the device of each target that was sent."""
    with connected(stack.base.url, read_only=True) as connection:
        asked = "SELECT notification_id, n, device_id FROM receipt WHERE status <> 'failed'"
        for notification_id, n, device_id in connection.execute(asked).fetchall():
            yield NotificationId(bytes(notification_id)), n, device_id


def _named(notification_id: NotificationId, _: int, device_id: str) -> Said:
    return {"event": "delivered", "notification_id": format_id(notification_id), "device_id": device_id}


def _signed(secret: bytes, notification_id: NotificationId, n: int) -> Said:
    return {"event": "opened", "token": receipt_token(secret, AppId(APP), notification_id, n)}


def _with_links(folder: Path, exits: ExitStack, *, stands: Stands, secret: bytes) -> Base:
    base = stands(folder, exits)
    (folder / _KEY_FILE).write_bytes(secret)
    more = {"receipts": {"secret_file": str(folder / _KEY_FILE)}, "rest": {"public_url": "https://push.example.com"}}
    return replace(base, settings=base.settings | more)


def _busy_s() -> float:
    """Measure the CPU seconds of the whole machine so far."""
    user, nice, system, *_ = map(int, Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:])
    return (user + nice + system) / os.sysconf("SC_CLK_TCK")
