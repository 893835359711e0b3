"""The primary of PostgreSQL is killed under a load, and its standby promoted (S3-128): nothing is lost, all goes on."""

from __future__ import annotations

import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psycopg

from benchmarks.load.paced import Paced, percentiles
from benchmarks.load.setup import Setup
from benchmarks.stores import spent_s, up
from scripts.services.postgres import PostgresPair
from waypost.bench.latency import CONNECTIONS
from waypost.bench.rows import Row, row
from waypost.bench.stack import BenchStack, running, until_quiet
from waypost.bench.stores import Base

NAME = "failover"
DATABASE = "load"
SHARE = 10
"""The load is a tenth of the sustained one."""


def run(setup: Setup) -> list[Row]:
    """A load on time, of single notifications to Android and iOS; a third of it before, the rest after."""
    pairs: list[PostgresPair] = []

    def stands(folder: Path, exits: ExitStack) -> Base:
        pair: Any = exits.enter_context(up(_pair, folder / "postgres"))
        pairs.append(pair)
        return _base(pair, folder)

    per_s, seconds = setup.per_s / SHARE, setup.part(9, 60)
    with running(setup.programs, setup.workers, setup.users, web=False, stands=stands) as stack:
        count = int(per_s * seconds)
        load = Paced(stack, 0, count=count, rate=per_s, users=setup.users, connections=CONNECTIONS)
        time.sleep(seconds / 3)
        (pair,) = pairs
        pair.kill()
        pair.promote()
        seen = load.seen()
        until_quiet(stack, count)
        return [
            row(NAME, f"notifications submitted, {per_s:.0f} a second", seen.submitted, ""),
            row(NAME, "told to come again, and taken then", seen.refused, "answers"),
            *percentiles(NAME, "from due to the answer", seen.answered_ms),
            row(NAME, "the longest without an answer: until the service had resumed", seen.answered_ms[-1] / 1e3, "s"),
            *_balance(stack, count),
        ]


def _pair(folder: Path, *, durable: bool) -> PostgresPair:
    return PostgresPair(folder, size=2, durable=durable)


def _base(pair: PostgresPair, folder: Path) -> Base:
    pair.synchronous()
    with psycopg.connect(pair.url_of(1), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {DATABASE}")
    store = {"url": pair.url_to(DATABASE), "run_dir": str(folder / "run")}
    return Base({"store": store}, {"postgres": store["url"]}, lambda: {"PostgreSQL": spent_s(pair)})


def _balance(stack: BenchStack, submitted: int) -> list[Row]:
    """Hold the gateway against what was submitted; AssertionError where a notification never came.

    What was on its way when the primary died, and was sent before its outcome was on record, may come twice.
    """
    marks = {mark for mark, _ in stack.gateway.marks()}
    counts = stack.gateway.counts()
    lost = submitted - len(marks & set(range(submitted)))  # no user has dead tokens alone
    assert not lost, f"{lost} of {submitted} never came"
    twice = sum(counts[name]["accepted"] - counts[name]["deliveries"] for name in ("apns", "fcm"))
    return [
        row(NAME, "deliveries sent", stack.gateway.total("accepted"), ""),
        row(NAME, "lost", lost, "", "0 wanted"),
        row(NAME, "sent twice, of what was on its way", twice, ""),
    ]
