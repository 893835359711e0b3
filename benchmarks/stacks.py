"""The whole path on each stack, its servers on the same cores, against SQLite alone in the same run."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence

import redis

from benchmarks.programs import in_rust
from benchmarks.stores import on_postgres, on_postgres_and_redis, on_the_log, published
from waypost.bench.end_to_end import Burst, burst
from waypost.bench.registry import APP
from waypost.bench.rows import Row, row
from waypost.bench.stack import BenchStack, running
from waypost.bench.stores import Stands, connected, embedded
from waypost.domain.channel import Channel
from waypost.domain.delivery import Receipt
from waypost.domain.ids import DeviceId, NotificationId
from waypost.domain.notification import Lane
from waypost.domain.status import DeliveryStatus
from waypost.domain.time import Instant
from waypost.stores.sql.driver import Connection
from waypost.stores.sql.driver import Row as Stored
from waypost.stores.sql.rows import INSERT_RECEIPT, RECEIPT_VALUES, receipt_row

USERS = 5_000
WARM_UP = 1_000
NOTIFICATIONS = int(os.environ.get("NOTIFICATIONS", "4000"))
STACKS: dict[str, tuple[Stands, Sequence[int]]] = {
    "SQLite": (embedded, (2, 1, 4)),
    "PostgreSQL": (on_postgres, (2, 1, 4)),
    "PostgreSQL and Redis": (on_postgres_and_redis, (2,)),
    "PostgreSQL, published by Redis": (published, (2,)),
    "log": (on_the_log, (2, 1, 4)),
}
"""With how many workers each is measured; the first is what the others are compared with."""
SIZED = ("notification", "content", "receipt", "device")
_SIZE = """
    SELECT coalesce(
        (SELECT sum(pg_total_relation_size(relid)) FROM pg_partition_tree('{table}')
         WHERE isleaf AND pg_relation_size(relid) > 0),
        pg_total_relation_size('{table}')),
        (SELECT count(*) FROM {table})"""
RECEIPTS_WANTED = 50_000
"""A second: what the seeds ask of whoever writes receipts."""
RECEIPTS = 50_000
GROUP = 1_000
SINGLE = 1_000


def run() -> list[Row]:
    """Each stack with its counts of workers; then receipts written in groups and one at a time."""
    rows: list[Row] = []
    against: Burst | None = None
    for name, (stands, counts) in STACKS.items():
        for workers in counts:
            what = f"{name}, {workers} worker{'s' * (workers > 1)}"
            print(f"  {what} ...", file=sys.stderr, flush=True)
            measured, beside = _delivered(stands, workers, what)
            against = against or measured
            base = f"SQLite, 2 workers: {against.per_s:.0f}"
            rows.append(
                row(
                    "stacks",
                    f"{what}: deliveries a second",
                    measured.per_s,
                    "1/s",
                    base,
                    measured.per_s / against.per_s,
                )
            )
            base = f"SQLite, 2 workers: {against.own_us:.0f}"
            ratio = measured.own_us / against.own_us
            rows.append(row("stacks", f"{what}: Waypost's CPU a delivery", measured.own_us, "µs", base, ratio))
            rows += beside
    return rows + _receipts()


def _delivered(stands: Stands, workers: int, what: str) -> tuple[Burst, list[Row]]:
    """What it took, and what it took of the servers."""
    with running(in_rust(), workers, USERS, stands=stands) as stack:
        burst(stack, 0, WARM_UP, users=USERS)
        before, reads = stack.base.cpu_s(), _redis_reads(stack)
        measured = burst(stack, WARM_UP, NOTIFICATIONS, users=USERS)
        after = stack.base.cpu_s()
        rows = [
            row("stacks", f"{what}: CPU a delivery of {name}", (after[name] - spent) / measured.deliveries * 1e6, "µs")
            for name, spent in before.items()
        ]
        if reads is not None:
            trips = ((_redis_reads(stack) or 0) - reads) / NOTIFICATIONS
            rows.append(row("stacks", f"{what}: reads by Redis a notification", trips, "", "wanted 1", trips))
        return measured, rows + _sizes(stack, what)


def _sizes(stack: BenchStack, what: str) -> list[Row]:
    """How large a row of each table is on PostgreSQL, its indexes and the space that updates left behind included."""
    if "postgres" not in stack.base.servers:
        return []
    rows = []
    with connected(stack.base.url, read_only=True) as connection:
        for table in SIZED:
            size, count = connection.execute(_SIZE.format(table=table)).fetchone()
            rows.append(row("stacks", f"{what}: a row of {table}", int(size) / count, "bytes"))
    return rows


def _redis_reads(stack: BenchStack) -> int | None:
    """How often Redis has read from its clients: a pipeline is one read, or few."""
    if "redis" not in stack.base.servers:
        return None
    with redis.Redis.from_url(stack.base.servers["redis"]) as client:
        return int(client.info("stats")["total_reads_processed"])


def _receipts() -> list[Row]:
    """By one connection, as the store writes them; every commit is durable."""
    with running(in_rust(), 1, 1, stands=on_postgres) as stack, connected(stack.base.url) as connection:
        grouped = _written(connection, _stored(0, RECEIPTS), GROUP)
        single = _written(connection, _stored(RECEIPTS, SINGLE), 1)
    what = "PostgreSQL: receipts a second"
    return [
        row("stacks", f"{what}, {GROUP} a commit", grouped, "1/s", "wanted", grouped / RECEIPTS_WANTED),
        row("stacks", f"{what}, one a commit", single, "1/s", "in groups", single / grouped),
    ]


def _stored(first: int, count: int) -> list[Stored]:
    now = Instant(int(time.time() * 1000))
    ids = (
        NotificationId(now.to_bytes(6, "big") + (0x7000 << 64 | 1 << 63 | n).to_bytes(10, "big"))
        for n in range(first, first + count)
    )
    receipts = (
        Receipt(
            each,
            0,
            DeviceId("device-0"),
            Channel("fcm"),
            DeliveryStatus.SENT,
            1,
            first_attempt_at=now,
            last_attempt_at=now,
            sent_at=now,
        )
        for each in ids
    )
    return [receipt_row(each, APP, 0, Lane.NORMAL) for each in receipts]


def _written(connection: Connection, rows: Sequence[Stored], together: int) -> float:
    """Rows a second."""
    started_s = time.perf_counter()
    for first in range(0, len(rows), together):
        connection.execute("BEGIN")
        connection.insert_all(INSERT_RECEIPT, RECEIPT_VALUES, rows[first : first + together])
        connection.execute("COMMIT")
    return len(rows) / (time.perf_counter() - started_s)
