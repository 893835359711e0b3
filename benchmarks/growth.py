"""Whether a delivery costs the same with ten and a hundred times the devices, the history and the queue.

What is there before is written straight into the tables.
"""

from __future__ import annotations

import os
import time
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.end_to_end import SIZE, USERS
from benchmarks.programs import in_rust
from waypost.bench.end_to_end import burst
from waypost.bench.programs import reached
from waypost.bench.registry import APP
from waypost.bench.rows import Row, row
from waypost.bench.stack import running
from waypost.domain.content import Content
from waypost.domain.ids import AppId, UserId, shard_of
from waypost.domain.time import DAY_MS, HOUR_MS
from waypost.stores.sql.connection import connect
from waypost.stores.sql.history import PARTS, SHORTEST
from waypost.stores.sql.rows import content_body

NOTIFICATIONS = 4_000
FULL = os.environ.get("FULL") == "1"
TIMES = (10, 100) if FULL else (10,)
HISTORY = 20_000
"""Finished notifications, once."""
QUEUED = (1_000, 100_000, 1_000_000) if FULL else (1_000, 100_000)
FROM_THE_QUEUE = 600
"""Notifications whose delivery is measured after as many for warming up."""
DAY_OLD = 30

# ruff: noqa: S608 - put together of constants
_NUMBERS = "WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < :count)"
_NOTIFICATIONS = f"""{_NUMBERS}
    INSERT INTO notification (seq, id, app, caller, user_id, shard, lane, kind, urgency, guarantee, status, due_at,
        created_at, expires_at, ttl_ms, finished_at, round, slice)
    SELECT :after + n, notification_id(n, :at), :app, 'bench', user_of(n), shard_of(n), 'normal', 'visible', 'normal',
        'at_least_once', :status, :due_at, :at, :at + :ttl_ms, :ttl_ms, :finished_at, 0, n / :cut
    FROM numbers"""
CUT = """INSERT INTO history_slice (first, number, after_seq)
    SELECT min(id), slice, min(seq) FROM notification WHERE slice > 0 GROUP BY slice"""
_CONTENTS = f"{_NUMBERS} INSERT INTO content (seq, body) SELECT :after + n, :body FROM numbers"
_RECEIPTS = f"""{_NUMBERS}
    INSERT INTO receipt (notification_id, n, shard, app, device_id, channel, status, attempt, retries, throttles, dead,
        first_attempt_at, last_attempt_at, sent_at, resolved_at)
    SELECT notification_id(n, :at), device, shard_of(n), :app, 'device-' || device, 'fcm', 'sent', 1, 0, 0, 0,
        :at, :at, :at, :at
    FROM numbers, (SELECT 0 AS device UNION ALL SELECT 1)"""


def run() -> list[Row]:
    """Everything against the same without it, in the same run; FULL=1 adds the largest (and takes its time)."""
    base = _delivered(USERS, 0)
    rows = [row("growth", f"{USERS * 2.5:,.0f} devices, no history: CPU a delivery", base, "µs")]
    for times in TIMES:
        us = _delivered(USERS * times, 0)
        what = f"{USERS * 2.5 * times:,.0f} devices"
        rows.append(row("growth", f"{what}: CPU a delivery", us, "µs", f"{USERS * 2.5:,.0f}: {base:.0f}", us / base))
    for times in TIMES:
        us = _delivered(USERS, HISTORY * times)
        what = f"{HISTORY * times:,} notifications in the history"
        rows.append(row("growth", f"{what}: CPU a delivery", us, "µs", f"none: {base:.0f}", us / base))
    short = None
    for queued in QUEUED:
        us = _drained(queued)
        short = short or us
        what = f"{queued:,} queued: CPU a delivery"
        rows.append(row("growth", what, us, "µs", f"{QUEUED[0]:,} queued: {short:.0f}", us / short))
    return rows


def _delivered(users: int, history: int) -> float:
    with running(in_rust(), 2, users, history=partial(write_history, count=history)) as stack:
        burst(stack, 0, SIZE.warm_up, users=users, known=history)
        return burst(stack, SIZE.warm_up, NOTIFICATIONS, users=users, known=history).own_us


def _drained(queued: int) -> float:
    """CPU of a delivery while so many wait: the second part of what is taken from the front."""
    with running(in_rust(), 2, USERS, history=partial(write_queue, count=queued + FROM_THE_QUEUE * 2)) as stack:
        deliveries = int(FROM_THE_QUEUE * 2.5)
        before, from_s = reached(stack.gateway, deliveries), stack.cpu_s()
        after, to_s = reached(stack.gateway, before + deliveries), stack.cpu_s()
        return (to_s - from_s) / (after - before) * 1e6


def write_history(database: Path, count: int) -> None:
    """So many finished notifications of a month ago, with two receipts each."""
    at = int(time.time() * 1000) - DAY_OLD * DAY_MS
    _written(database, count, at, status="sent", due_at=None, finished_at=at + 1000, receipts=True)


def write_queue(database: Path, count: int) -> None:
    """So many that wait to be routed."""
    _written(database, count, int(time.time() * 1000), status="pending", due_at=0, finished_at=None)


def _written(
    database: Path,
    count: int,
    at: int,
    *,
    status: str,
    due_at: int | None,
    finished_at: int | None,
    receipts: bool = False,
) -> None:
    if not count:
        return
    connection: Any = connect(database, busy_timeout_s=5)
    connection.create_function("notification_id", 2, _id, deterministic=True)
    connection.create_function("user_of", 1, _user, deterministic=True)
    connection.create_function("shard_of", 1, lambda n: shard_of(AppId(APP), UserId(_user(n))), deterministic=True)
    body = content_body(Content(title="Your parcel is here", body="It was left at the front door."))
    (after,) = connection.execute("SELECT value FROM sequence WHERE name = 'notification'").fetchone()
    common = {"count": count, "at": at, "app": APP, "after": after, "body": body, "ttl_ms": 60 * DAY_MS}
    common["cut"] = cut_of(count)
    common |= {"status": status, "due_at": due_at, "finished_at": finished_at}
    connection.execute("BEGIN IMMEDIATE")
    for statement in (_NOTIFICATIONS, CUT, _CONTENTS, *([_RECEIPTS] if receipts else [])):
        connection.execute(statement, common)
    connection.execute("UPDATE sequence SET value = value + :count WHERE name = 'notification'", common)
    hour = at // HOUR_MS
    counted = (APP, "normal", hour, status, count)
    connection.execute("INSERT INTO counter (app, lane, hour, status, delta) VALUES (?, ?, ?, ?, ?)", counted)
    connection.execute("COMMIT")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()


def cut_of(count: int) -> int:
    """The rows of a slice of the history, where there are so many."""
    return max(SHORTEST, count // PARTS)


def _id(n: int, at: int) -> bytes:
    """A UUIDv7 of that time."""
    return at.to_bytes(6, "big") + (0x7000).to_bytes(2, "big") + (1 << 63 | n).to_bytes(8, "big")


def _user(n: int) -> str:
    return f"user-{n % USERS}"
