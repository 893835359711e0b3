"""Every device refreshes its token at the same moment (S3-127): none keeps an old one, and the API still answers."""

from __future__ import annotations

import time
from typing import Any

from benchmarks.load.paced import Paced, Seen, percentiles
from benchmarks.load.setup import Setup
from benchmarks.load.users import AT_ONCE
from benchmarks.load.watch import Watch
from waypost.bench.latency import CONNECTIONS
from waypost.bench.registry import APP
from waypost.bench.rows import Row, row
from waypost.bench.stack import BenchStack, running
from waypost.bench.stores import connected

NAME = "refresh"
ROUNDS = 2
"""Every device refreshes so often: the first registers it."""
CALLERS = 1_000
"""Connections over which the refreshes come: the backends of apps, which keep theirs open."""
BESIDE_PER_S = 20
VIPS = 500
_TOKEN = "live-{n}:APA91b" + "x" * 40
_STORED = "SELECT user_id, device_id, token FROM device WHERE app = ? AND user_id LIKE 'user-%' AND active = 1"


def run(setup: Setup) -> list[Row]:
    """Register, refresh all at once beside single notifications on time, and read each device's token."""
    with running(setup.programs, setup.workers, 0, vips=VIPS) as stack:
        seconds = setup.part(3, 10)
        before = _beside(stack, 0, seconds).seen()
        watch = Watch(stack)
        beside = _beside(stack, 10**6, 3 * seconds)
        time.sleep(1)  # it has begun
        storms = [_refreshed(stack, setup, number) for number in range(ROUNDS)]
        meanwhile = beside.seen()
        taken = watch.taken()
        return [
            *_storm_rows(storms[-1], setup),
            *_stored_rows(stack, setup),
            *_answers(before, "notifications before, "),
            *_answers(meanwhile, "notifications meanwhile, "),
            row(NAME, "memory of all processes, after", taken.after_mib, "MiB", f"{taken.before_mib:.0f} before",
                taken.after_mib / taken.before_mib),
            row(NAME, "cores that others had meanwhile", 100 * taken.others, "%"),
        ]  # fmt: skip


def _refreshed(stack: BenchStack, setup: Setup, number: int) -> Seen:
    wishes: dict[str, Any] = {
        "method": "PUT",
        "path": "/v1/devices/user-{user}/phone",
        "body": f'{{"platform":"android","token":"{_TOKEN}"}}',
        "users": setup.users,
        "count": setup.users,
        "connections": min(CALLERS, setup.users),
        "rate": AT_ONCE,
    }
    return Paced(stack, number * setup.users, **wishes).seen(arriving=False)


def _beside(stack: BenchStack, first: int, seconds: float) -> Paced:
    count = int(BESIDE_PER_S * seconds)
    wishes = {"users": VIPS, "prefix": "vip-", "connections": CONNECTIONS}
    return Paced(stack, first, count=count, rate=BESIDE_PER_S, **wishes)


def _storm_rows(storm: Seen, setup: Setup) -> list[Row]:
    return [
        row(NAME, "devices that refresh at the same moment", setup.users, "", "10,000 wanted", setup.users / 10_000),
        row(NAME, "refreshed a second", storm.submitted / storm.seconds, "1/s"),
        row(NAME, "told to come again, and taken then", storm.refused, "answers"),
        *percentiles(NAME, "a refresh, from due to the answer", storm.answered_ms),
    ]


def _stored_rows(stack: BenchStack, setup: Setup) -> list[Row]:
    """Say what the registry has; AssertionError where a device has any token but its newest, or is there twice."""
    with connected(stack.base.url, read_only=True) as connection:
        stored = connection.execute(_STORED, (APP,)).fetchall()
    newest = [
        (f"user-{user}", "phone", _TOKEN.replace("{n}", str((ROUNDS - 1) * setup.users + user)))
        for user in range(setup.users)
    ]
    assert sorted(map(tuple, stored)) == sorted(newest), "a device has another token than its newest"
    return [row(NAME, "devices with exactly their newest token", len(stored), "", f"{setup.users:,} wanted",
                len(stored) / setup.users),
            row(NAME, "updates lost", 0, "", "0 wanted")]  # fmt: skip


def _answers(seen: Seen, what: str) -> list[Row]:
    return percentiles(NAME, f"{what}from due to the answer", seen.answered_ms)
