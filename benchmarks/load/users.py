"""10,000 users at the same moment (S3-126): each with a live connection and a connection whose request is due then."""

from __future__ import annotations

import asyncio
import resource
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from benchmarks.live import Clients
from benchmarks.load.ended import balance
from benchmarks.load.paced import Paced, Seen
from benchmarks.load.setup import Setup
from benchmarks.load.watch import Watch
from benchmarks.programs import MissingProgram
from waypost.bench.rows import Row, row
from waypost.bench.stack import BenchStack, running
from waypost.bench.stores import Base, embedded

NAME = "users"
AT_ONCE = 1e9
"""A rate by which all are due within some microseconds."""
KEPT_FILES = 500
HEAD_S = 60
"""Seconds that a connection may wait for its first request: all are open before the first is due."""
PING_S = 600
"""Seconds between pings: our ends of the web sockets answer none."""
TOLD_TIMEOUT_S = 120
MANY = 100_000
"""Connections that one worker takes, and from one address: all of these come from one."""


def run(setup: Setup) -> list[Row]:
    """As many connections for requests as users, open before, beside as many web sockets, which hear of each."""
    wanted = setup.users + KEPT_FILES  # of ours, and of each of two workers
    if resource.getrlimit(resource.RLIMIT_NOFILE)[0] < wanted:
        raise MissingProgram(f"{wanted:,} open files in a process (`ulimit -n`)")
    with running(setup.programs, setup.workers, setup.users, stands=_with_feeds) as stack:
        return asyncio.run(_measured(stack, setup))


def _with_feeds(folder: Path, exits: ExitStack) -> Base:
    base = embedded(folder, exits)
    feed = {"address_connections_limit": MANY, "ping_s": PING_S}
    rest = {"connections_limit": MANY, "head_timeout_s": HEAD_S}
    app = {"inapp": {}, "defaults": {"channels": ["push", "inapp"]}}
    return replace(base, settings=base.settings | {"feed": feed, "rest": rest}, app=app)


async def _measured(stack: BenchStack, setup: Setup) -> list[Row]:
    clients = Clients(stack)
    try:
        return await _at_once(stack, setup, clients)
    finally:
        clients.cut()
        await asyncio.sleep(0)  # until they are closed


async def _at_once(stack: BenchStack, setup: Setup, clients: Clients) -> list[Row]:
    alone_mib = stack.memory_mib()
    await clients.join(range(setup.users))
    watch = Watch(stack)
    load = Paced(stack, 0, count=setup.users, users=setup.users, connections=setup.users, rate=AT_ONCE)
    seen = await asyncio.to_thread(load.seen, least=setup.users)
    async with asyncio.timeout(TOLD_TIMEOUT_S):
        await clients.saw(setup.users)
    taken = watch.taken()
    return [
        row(NAME, "users with a live connection and a request due at the same moment", setup.users, "", "10,000 wanted",
            setup.users / 10_000),
        *_intake(seen),
        row(NAME, "entries that their web sockets got", clients.entries, "", f"{setup.users:,} wanted",
            clients.entries / setup.users),
        row(NAME, "memory before they came", alone_mib, "MiB"),
        *taken.rows(NAME),
        *balance(stack, NAME, setup.users),
    ]  # fmt: skip


def _intake(seen: Seen) -> list[Row]:
    return [
        row(NAME, "accepted a second", seen.submitted / seen.seconds, "1/s"),
        row(NAME, "told to come again, and taken then", seen.refused, "answers"),
        *seen.rows(NAME),
    ]
