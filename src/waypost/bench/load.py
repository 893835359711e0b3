"""A load on the REST API: ``python -m waypost.bench.load HOST:PORT name=value …``; prints what it saw as JSON.

The key is in ``WAYPOST_API_KEY``: arguments can be read by everybody on the machine.

``connections`` (8) requests at once of ``batch`` (1) notifications each, to ``users`` (1000) in turn, until ``count``
notifications have been submitted; with ``rate``, that many a second, late or not: a request's latency counts from when
it was due; ``seconds`` ends it before that. ``fields`` is JSON to be added to each notification, such as
``"dedup_window":0``, where ``{n}`` is its number; ``first`` is the number of the first; ``prefix`` goes before the
number of a user. With ``shapes``, a line each (waypost.bench.shapes), notifications have one of them instead, users
come in no order, and some are said twice. With ``body`` it is requests with that body, ``method`` (POST) and ``path``,
in both of which ``{n}`` and ``{user}`` are numbers. All connections are open before the first request is due. ``marks``
is a file that is given, for each request that was taken, u64s (little-endian): first number, how many, µs since 1970
when due, and when answered.
"""

from __future__ import annotations

import asyncio
import json
import math
import os
import struct
import sys
import time
from collections import Counter
from pathlib import Path

import uvloop

from waypost.bench.shapes import said_by, scattered, shape_of

Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]

NO_ANSWER = 0
"""The status where the connection was closed instead."""
AGAIN = {429, 503, NO_ANSWER}
TAKEN = range(200, 300)
REPEAT_AFTER_S = 0.05
"""Seconds after which a request answered 429 or 503 is repeated, or one without an answer, as a caller would."""


class LoadPlan:
    """The notifications to submit, and what became of them."""

    def __init__(self, address: str, key: str, wishes: dict[str, str]) -> None:
        self._host = address
        self._key = key
        self._batch = int(wishes.get("batch", 1))
        self._users = int(wishes.get("users", 1000))
        self._count = int(wishes.get("count", sys.maxsize))
        self._seconds = float(wishes.get("seconds", math.inf))
        self._rate = float(wishes.get("rate", 0))
        self._first = int(wishes.get("first", 0))
        self._fields = "," + wishes["fields"] if wishes.get("fields") else ""
        self._prefix = wishes.get("prefix", "user-")
        self._shapes = wishes["shapes"].split("\n") if wishes.get("shapes") else []
        self._method, self._path = wishes.get("method", "POST"), wishes.get("path", "")
        self._body = wishes.get("body", "")
        self._taken = 0
        self._statuses: Counter[str] = Counter()
        self._latencies_s: list[float] = []
        self.begin()
        self.marks = bytearray()

    async def connected(self) -> Connection:
        """Open a connection."""
        host, port = self._host.split(":")
        return await asyncio.open_connection(host, int(port))

    def begin(self) -> None:
        """Count time from now."""
        self._began, self._began_us = time.perf_counter(), time.time_ns() // 1000

    async def submit(self, connection: Connection) -> None:
        """Submit over one connection, one request after the other."""
        reader, writer = connection
        while self._taken < self._count and time.perf_counter() - self._began < self._seconds:
            taken, many = self._taken, min(self._batch, self._count - self._taken)
            self._taken += many
            due = self._began + taken / self._rate if self._rate else time.perf_counter()
            await asyncio.sleep(due - time.perf_counter())
            request = self._request(self._first + taken, many)
            while True:
                status = await _status(reader, writer, request)
                self._answered(status, taken, many, due)
                if status not in AGAIN:
                    break
                await asyncio.sleep(REPEAT_AFTER_S)
                if status == NO_ANSWER:
                    reader, writer = await self.connected()
        writer.close()

    def _request(self, first: int, many: int) -> bytes:
        if self._body:
            return self._said(self._method, self._filled(self._path, first), self._filled(self._body, first))
        body = ",".join([self._notification(n) for n in range(first, first + many)])
        path = "/v1/notifications"
        if self._batch > 1:
            body, path = f'{{"notifications":[{body}]}}', "/v1/notifications/batch"
        return self._said("POST", path, body)

    def _filled(self, text: str, n: int) -> str:
        return text.replace("{n}", str(n)).replace("{user}", str(n % self._users))

    def _said(self, method: str, path: str, body: str) -> bytes:
        head = f"{method} {path} HTTP/1.1\r\nHost: {self._host}\r\nAuthorization: Bearer {self._key}\r\n"
        return f"{head}Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()

    def _notification(self, n: int) -> str:
        if self._shapes:
            return self._mixed(said_by(n))
        text = f'"title":"Your parcel is here","body":"Number {n} was left at the front door."'
        data = f'"data":{{"mark":"{n}","screen":"parcels"}}'
        fields = self._fields.replace("{n}", str(n))
        return f'{{"user_id":"{self._prefix}{n % self._users}",{text},{data}{fields}}}'

    def _mixed(self, n: int) -> str:
        shape = self._shapes[shape_of(n, len(self._shapes))] + self._fields
        return f'{{"user_id":"{self._prefix}{scattered(n) % self._users}",{shape.replace("{n}", str(n))}}}'

    def _answered(self, status: int, taken: int, many: int, due: float) -> None:
        now = time.perf_counter()
        self._statuses[str(status)] += 1
        self._latencies_s.append(now - due)
        if status in TAKEN:
            due_us, now_us = (self._began_us + int((at - self._began) * 1e6) for at in (due, now))
            self.marks += struct.pack("<QQQQ", self._first + taken, many, due_us, now_us)

    def report(self) -> dict[str, object]:
        """Report the result as the caller reads it."""
        waited = sorted(self._latencies_s)
        parts = {f"p{share}_ms": waited[len(waited) * share // 100] * 1000 for share in (50, 95, 99)}
        seconds = time.perf_counter() - self._began
        return {"submitted": self._taken, "seconds": seconds, "statuses": self._statuses} | parts


async def _status(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: bytes) -> int:
    """Ask, and read an answer with a Content-Length to its end."""
    try:
        writer.write(request)
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        await reader.readexactly(int(head.partition(b"content-length:")[2].split(b"\r\n", 1)[0]))
    except (asyncio.IncompleteReadError, ConnectionError):
        return NO_ANSWER
    return int(head[9:12])


async def _run(course: LoadPlan, connections: int) -> None:
    opened = [await course.connected() for _ in range(connections)]
    course.begin()
    await asyncio.gather(*map(course.submit, opened))


if __name__ == "__main__":
    named = dict(each.split("=", 1) for each in sys.argv[2:])
    course = LoadPlan(sys.argv[1], os.environ["WAYPOST_API_KEY"], named)
    uvloop.run(_run(course, int(named.get("connections", 8))))
    print(json.dumps(course.report()))
    if "marks" in named:
        Path(named["marks"]).write_bytes(course.marks)
