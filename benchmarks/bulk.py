"""One bulk request whose recipients stream from the registry, until every one of them is final."""

from __future__ import annotations

import json
import os
import tempfile
import time
import urllib.request
from typing import Any

from benchmarks.end_to_end import SIZE, USERS, burst
from benchmarks.programs import in_rust
from waypost.bench.end_to_end import Burst, steady_rate
from waypost.bench.programs import cpu_s
from waypost.bench.registry import DEVICES_PER_USER
from waypost.bench.rows import Row, row
from waypost.bench.stack import BenchStack, running, settled
from waypost.client import Client

MARK = {"mark": "9999999999", "screen": "parcels"}
NOTIFICATION = {"title": "Your parcel is here", "body": "It was left at the front door.", "data": MARK}
HOUR_S = 3600.0
LISTED = int(os.environ.get("LISTED", "20000"))
"""Recipients of a list whom the registry does not know."""


def run() -> list[Row]:
    """Two workers, to everybody; then to a list of strangers, which is what the recipients alone cost."""
    with running(in_rust(), 2, USERS) as stack:
        burst(stack, 0, SIZE.warm_up)
        before = stack.peak_mib()
        rows = _bulk(stack, SIZE.warm_up).rows("bulk", f"2 workers, one request to all {USERS:,} in the registry")
        rows.append(_memory(stack, f"{USERS:,} recipients", before))
        return rows + _list(stack)


def _memory(stack: BenchStack, what: str, before: float) -> Row:
    peak = stack.peak_mib()
    name = f"{what}: memory of the largest process at its peak"
    return row("bulk", name, peak, "MiB", f"{before:.0f} before", peak / before)


def _list(stack: BenchStack) -> list[Row]:
    what = f"a list of {LISTED:,} without devices"
    before, own_before = stack.peak_mib(), stack.cpu_s()
    job: dict[str, Any] = _asked(stack, "POST", "/v1/bulk", {"notification": NOTIFICATION, "upload": True})
    with tempfile.TemporaryFile() as lines:
        lines.writelines(b'{"user_id":"stranger-%d"}\n' % n for n in range(LISTED))
        lines.seek(0)
        Client(stack.url, stack.key, timeout_s=HOUR_S).upload_recipients(job["id"], lines, "application/x-ndjson")
    uploaded_s = stack.cpu_s() - own_before
    while (seen := _asked(stack, "GET", f"/v1/bulk/{job['id']}"))["state"] != "finished":
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


def begin(stack: BenchStack) -> str:
    """Tell everybody; the job's id."""
    job: dict[str, Any] = _asked(stack, "POST", "/v1/bulk", {"notification": NOTIFICATION, "registry": {}})
    return str(job["id"])


def state(stack: BenchStack, job_id: str) -> str:
    """Whether it is finished."""
    return str(_asked(stack, "GET", f"/v1/bulk/{job_id}")["state"])


def waiting(stack: BenchStack, job_id: str) -> int:
    """How many recipients were found and are not settled yet."""
    counts = _asked(stack, "GET", f"/v1/bulk/{job_id}")["counts"]
    return int(sum(counts.get(status, 0) for status in ("pending", "processing")))


def cancel(stack: BenchStack, job_id: str) -> None:
    """Send nothing more of it."""
    _asked(stack, "POST", f"/v1/bulk/{job_id}/cancel")


def _bulk(stack: BenchStack, before: int) -> Burst:
    own_before, gateway_before = stack.cpu_s(), cpu_s(stack.gateway.pid)
    answered = stack.gateway.total("accepted", "dead")
    job_id = begin(stack)
    per_s = steady_rate(stack, answered, USERS * DEVICES_PER_USER * 0.99)
    while state(stack, job_id) != "finished":
        time.sleep(0.2)
    settled(stack, before + USERS)
    deliveries = stack.gateway.total("accepted", "dead") - answered
    each_us = 1e6 / deliveries
    own, others = stack.cpu_s() - own_before, cpu_s(stack.gateway.pid) - gateway_before
    return Burst(USERS, deliveries, per_s, own * each_us, others * each_us, 0.0)


def _asked(stack: BenchStack, method: str, path: str, body: object = None) -> dict[str, Any]:
    request = urllib.request.Request(  # noqa: S310 - our own server
        stack.url + path,
        None if body is None else json.dumps(body).encode(),
        {"Authorization": f"Bearer {stack.key}", "Content-Type": "application/json"},
        method=method,
    )
    with urllib.request.urlopen(request) as answer:  # noqa: S310 - as above
        read: dict[str, Any] = json.load(answer)
    return read
