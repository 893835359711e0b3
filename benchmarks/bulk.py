"""One bulk request whose recipients stream from the registry, until every one of them is final."""

from __future__ import annotations

import os
import tempfile
import threading
import time
import urllib.error
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http import HTTPStatus
from typing import Any

from benchmarks.end_to_end import SIZE
from benchmarks.programs import in_rust
from waypost.bench.bulk import EVERYBODY, NOTIFICATION, ask, begin, everybody, state
from waypost.bench.end_to_end import burst
from waypost.bench.rows import Row, row
from waypost.bench.stack import BenchStack, running
from waypost.client import Client

__all__ = ["begin", "cancel", "run", "state", "waiting"]

USERS = int(os.environ.get("USERS", "100000"))
HOUR_S = 3600.0
LOOK_S = 0.25
"""Seconds between two looks whether a job is over."""
APART_S = 1.0
"""Seconds between the beginnings of two jobs that take turns: so they do not end together."""
LISTED = int(os.environ.get("LISTED", "20000"))
"""Recipients of a list whom the registry does not know."""


def run() -> list[Row]:
    """Two workers, to everybody; then to a list of strangers, which is what the recipients alone cost."""
    with running(in_rust(), 2, USERS) as stack:
        burst(stack, 0, SIZE.warm_up, users=USERS)
        before = stack.peak_mib()
        rows = everybody(stack, SIZE.warm_up, USERS).rows("bulk", EVERYBODY)
        rows.append(_memory(stack, f"{USERS:,} recipients", before))
        return rows + _list(stack)


def _memory(stack: BenchStack, what: str, before: float) -> Row:
    peak = stack.peak_mib()
    name = f"{what}: memory of the largest process at its peak"
    return row("bulk", name, peak, "MiB", f"{before:.0f} before", peak / before)


def _list(stack: BenchStack) -> list[Row]:
    what = f"a list of {LISTED:,} without devices"
    before, own_before = stack.peak_mib(), stack.cpu_s()
    job: dict[str, Any] = ask(stack, "POST", "/v1/bulk", {"notification": NOTIFICATION, "upload": True})
    with tempfile.TemporaryFile() as lines:
        lines.writelines(b'{"user_id":"stranger-%d"}\n' % n for n in range(LISTED))
        lines.seek(0)
        Client(stack.url, stack.key, timeout_s=HOUR_S).upload_recipients(job["id"], lines, "application/x-ndjson")
    uploaded_s = stack.cpu_s() - own_before
    while (seen := ask(stack, "GET", f"/v1/bulk/{job['id']}"))["state"] != "finished":
        time.sleep(0.2)
    assert seen["counts"].get("no_targets") == LISTED, seen
    each_us = 1e6 / LISTED
    return [
        row("bulk", f"{what}: Waypost's CPU of reading a line", uploaded_s * each_us, "µs"),
        row(
            "bulk",
            f"{what}: Waypost's CPU a recipient",
            (stack.cpu_s() - own_before) * each_us - uploaded_s * each_us,
            "µs",
        ),
        _memory(stack, what, before),
    ]


def waiting(stack: BenchStack, job_id: str) -> int:
    """How many recipients were found and are not settled yet."""
    counts = ask(stack, "GET", f"/v1/bulk/{job_id}")["counts"]
    return int(sum(counts.get(status, 0) for status in ("pending", "processing")))


def cancel(stack: BenchStack, job_id: str) -> None:
    """Send nothing more of it; one that is over by then is left as it is."""
    try:
        ask(stack, "POST", f"/v1/bulk/{job_id}/cancel")
    except urllib.error.HTTPError as refused:
        if refused.code != HTTPStatus.CONFLICT:
            raise


@contextmanager
def going_on(stack: BenchStack) -> Iterator[None]:
    """Tell everybody again and again, for as long as the block: two jobs are open at each moment, one ahead."""
    jobs = [begin(stack)]
    time.sleep(APART_S)
    jobs.append(begin(stack))
    is_over = threading.Event()

    def renew() -> None:
        while not is_over.wait(LOOK_S):
            jobs[:] = [job_id for job_id in jobs if state(stack, job_id) != "finished"]
            jobs.extend(begin(stack) for _ in range(2 - len(jobs)))

    with ThreadPoolExecutor(1) as aside:
        renewing = aside.submit(renew)
        try:
            yield
        finally:
            is_over.set()
        renewing.result()
    for job_id in jobs:
        cancel(stack, job_id)
