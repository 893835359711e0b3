"""The cost of live connections: memory of idle ones, CPU of an entry that is told, how soon it is seen, coming back."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from statistics import quantiles
from typing import Any, Final

from benchmarks.programs import MissingProgram
from waypost.bench.programs import OWN
from waypost.bench.registry import APP
from waypost.bench.rows import Row, row
from waypost.bench.stack import BenchStack, running
from waypost.bench.stores import Base, connected, embedded
from waypost.domain.ids import AppId, UserId
from waypost.domain.time import HOUR_MS, SECOND_MS, Instant
from waypost.entrypoints.live.connection import Reader
from waypost.entrypoints.live.tickets import make_ticket

CONNECTIONS: Final = int(os.environ.get("CONNECTIONS", "15000"))
ENTRIES: Final = 10_000
IN_A_REQUEST: Final = 100
SINGLE: Final = 200
AT_ONCE: Final = 200
KEPT_FILES: Final = 200
_WORD: Final = b'"type":"entry"'


def run() -> list[Row]:
    """One worker that takes requests, delivers and tells, and this process, which holds the other ends."""
    if os.sysconf("SC_OPEN_MAX") < CONNECTIONS + KEPT_FILES:
        raise MissingProgram(f"{CONNECTIONS} open files; CONNECTIONS=… asks for fewer")
    with running(OWN, 1, 1, web=False, stands=_with_feeds) as stack:
        return asyncio.run(_measured(stack))


def _with_feeds(folder: Path, exits: ExitStack) -> Base:
    base = embedded(folder, exits)
    feed = {"connections_limit": 10 * CONNECTIONS, "address_connections_limit": 10 * CONNECTIONS}
    return replace(base, settings=base.settings | {"apps": {APP: {"inapp": {}}}, "feed": feed})


async def _measured(stack: BenchStack) -> list[Row]:
    clients = Clients(stack)
    before_mib = stack.memory_mib()
    await clients.join(range(CONNECTIONS))
    idle_kib = (stack.memory_mib() - before_mib) * 1024 / CONNECTIONS
    alone_s, _ = await _sent(stack, clients, "nobody", 0)
    told_s, took_s = await _sent(stack, clients, "user", ENTRIES)
    seen_ms = [await _seen_ms(stack, clients, n) for n in range(SINGLE)]
    began = time.perf_counter()
    clients.cut()
    await clients.join(range(CONNECTIONS))
    back_s = time.perf_counter() - began
    percentiles = quantiles(seen_ms, n=20)
    what = f"{CONNECTIONS:,} connections"
    return [
        row("live", f"{what}: memory of an idle one", idle_kib, "KiB", "4 wanted", idle_kib / 4),
        row("live", "an entry: CPU from the request to the feed", alone_s / ENTRIES * 1e6, "µs"),
        row(
            "live", "an entry: CPU of telling it to a web socket", (told_s - alone_s) / ENTRIES * 1e6, "µs", "40 wanted"
        ),
        row("live", "entries told in a second, intake and delivery on the same process", ENTRIES / took_s, "1/s"),
        row("live", "from the answer 202 to the web socket: median", percentiles[9], "ms"),
        row("live", "from the answer 202 to the web socket: p95", percentiles[18], "ms", "100 wanted"),
        row("live", f"{what} cut at once: all back after", back_s, "s", "30 wanted"),
    ]


async def _sent(stack: BenchStack, clients: Clients, prefix: str, expected: int) -> tuple[float, float]:
    """Send entries to users of that *prefix*; return CPU seconds of Waypost, and how long until all were seen."""
    cpu_s, began = stack.cpu_s(), time.perf_counter()
    goal = clients.entries + expected
    await asyncio.to_thread(_post_all, stack, prefix)
    await clients.saw(goal)
    took_s = time.perf_counter() - began
    await asyncio.to_thread(_until_in_feeds, stack, prefix)
    return stack.cpu_s() - cpu_s, took_s


def _post_all(stack: BenchStack, prefix: str) -> None:
    connection = http.client.HTTPConnection(stack.url.removeprefix("http://"))
    for first in range(0, ENTRIES, IN_A_REQUEST):
        many = [_entry(f"{prefix}-{n}") for n in range(first, first + IN_A_REQUEST)]
        _post(stack, connection, "/v1/notifications/batch", {"notifications": many})


def _entry(user: str) -> dict[str, Any]:
    return {"user_id": user, "title": "Your parcel is here", "body": "Left at the front door.", "channels": ["inapp"]}


def _post(stack: BenchStack, connection: http.client.HTTPConnection, path: str, body: object) -> Any:
    headers = {"authorization": f"Bearer {stack.key}", "content-type": "application/json"}
    connection.request("POST", path, json.dumps(body), headers)
    answer = connection.getresponse()
    read = json.loads(answer.read())
    if answer.status >= http.client.BAD_REQUEST:
        raise RuntimeError(f"{answer.status}: {read}")
    return read


def _until_in_feeds(stack: BenchStack, prefix: str) -> None:
    count = "SELECT count(*) FROM feed_entry WHERE app = ? AND user_id >= ? AND user_id < ?"
    with connected(stack.base.url, read_only=True) as connection:
        while connection.execute(count, (APP, f"{prefix}-", f"{prefix}.")).fetchone()[0] < ENTRIES:
            time.sleep(0.05)


async def _seen_ms(stack: BenchStack, clients: Clients, n: int) -> float:
    goal = clients.entries + 1
    connection = http.client.HTTPConnection(stack.url.removeprefix("http://"))
    await asyncio.to_thread(_post, stack, connection, "/v1/notifications", _entry(f"user-{n}"))
    began = time.perf_counter()
    await clients.saw(goal)
    connection.close()
    return (time.perf_counter() - began) * 1e3


class Clients:
    """The other ends of all connections: they count entries, and keep nothing."""

    def __init__(self, stack: BenchStack) -> None:
        self._host = stack.url.removeprefix("http://")
        asked = http.client.HTTPConnection(self._host)
        _post(stack, asked, "/v1/users/user-0/live-tickets", {})  # makes the secret
        asked.close()
        with connected(stack.base.url, read_only=True) as connection:
            self._secret = bytes(connection.execute("SELECT secret FROM feed_secret").fetchone()[0])
        self._open: list[asyncio.WriteTransport] = []
        self._changed = asyncio.Event()
        self._heard = 0
        self.entries = 0

    async def join(self, users: Sequence[int]) -> None:
        """Connect for each of *users*, and wait for all greetings."""
        goal = self._heard + len(users)
        for first in range(0, len(users), AT_ONCE):
            await asyncio.gather(*map(self._join, users[first : first + AT_ONCE]))
        await self._until(lambda: self._heard >= goal)

    async def saw(self, goal: int) -> None:
        """Wait until so many entries came."""
        await self._until(lambda: self.entries >= goal)

    def cut(self) -> None:
        """Cut all connections at once."""
        for each in self._open:
            each.abort()
        self._open.clear()

    def heard(self, data: bytes) -> None:
        """Count what one of them read."""
        self._heard += data.count(b'"type":"hello"')
        self.entries += data.count(_WORD)
        self._changed.set()

    async def _join(self, n: int) -> None:
        host, _, port = self._host.partition(":")
        expires_at = Instant(int(time.time() * SECOND_MS) + HOUR_MS)
        ticket = make_ticket(self._secret, Reader(AppId(APP), UserId(f"user-{n}")), expires_at)
        head = (
            f"GET /live?ticket={ticket} HTTP/1.1\r\nhost: {self._host}\r\nupgrade: websocket\r\nconnection: Upgrade\r\n"
            "sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        )
        transport, _ = await asyncio.get_running_loop().create_connection(lambda: _End(self), host, int(port))
        transport.write(head.encode())
        self._open.append(transport)

    async def _until(self, condition: Any) -> None:
        while not condition():
            self._changed.clear()
            await self._changed.wait()


class _End(asyncio.Protocol):
    """The other end of one connection."""

    __slots__ = ("_clients",)

    def __init__(self, clients: Clients) -> None:
        self._clients = clients

    def data_received(self, data: bytes) -> None:
        """Count what came; a message is never cut in two here, since it is small."""
        self._clients.heard(data)
