"""One bulk request whose recipients stream from the registry, until every one of them is final."""

from __future__ import annotations

import json
import time
import urllib.request
from typing import Any

from benchmarks.end_to_end import USERS, WARM_UP, Burst, burst, steady_rate
from benchmarks.programs import cpu_s
from benchmarks.registry import DEVICES_PER_USER
from benchmarks.rows import Row
from benchmarks.stack import Stack, running, settled

MARK = {"mark": "9999999999", "screen": "parcels"}


def run() -> list[Row]:
    """Two workers, to everybody."""
    with running(2, USERS) as stack:
        burst(stack, 0, WARM_UP)
        return _bulk(stack, WARM_UP).rows("bulk", "2 workers, one request to all in the registry")


def begin(stack: Stack) -> str:
    """Tell everybody; the job's id."""
    notification = {"title": "Your parcel is here", "body": "It was left at the front door.", "data": MARK}
    job: dict[str, Any] = _asked(stack, "POST", "/v1/bulk", {"notification": notification, "registry": {}})
    return str(job["id"])


def cancel(stack: Stack, job_id: str) -> None:
    """Send nothing more of it."""
    _asked(stack, "POST", f"/v1/bulk/{job_id}/cancel")


def _bulk(stack: Stack, before: int) -> Burst:
    own_before, gateway_before = stack.cpu_s(), cpu_s(stack.gateway.pid)
    answered = stack.gateway.total("accepted", "dead")
    job_id = begin(stack)
    per_s = steady_rate(stack, answered, USERS * DEVICES_PER_USER * 0.99)
    while _asked(stack, "GET", f"/v1/bulk/{job_id}")["state"] != "finished":
        time.sleep(0.2)
    settled(stack, before + USERS)
    deliveries = stack.gateway.total("accepted", "dead") - answered
    each_us = 1e6 / deliveries
    own, others = stack.cpu_s() - own_before, cpu_s(stack.gateway.pid) - gateway_before
    return Burst(USERS, deliveries, per_s, own * each_us, others * each_us, 0.0)


def _asked(stack: Stack, method: str, path: str, body: object = None) -> dict[str, Any]:
    request = urllib.request.Request(  # noqa: S310 - our own server
        stack.url + path,
        None if body is None else json.dumps(body).encode(),
        {"Authorization": f"Bearer {stack.key}", "Content-Type": "application/json"},
        method=method,
    )
    with urllib.request.urlopen(request) as answer:  # noqa: S310 - as above
        read: dict[str, Any] = json.load(answer)
    return read
