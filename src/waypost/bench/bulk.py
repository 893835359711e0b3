"""One bulk request whose recipients stream from the registry, until every one of them is final."""

from __future__ import annotations

import json
import time
import urllib.request
from typing import Any

from waypost.bench.end_to_end import MIXED_LEAST, Burst, burst, steady_rate
from waypost.bench.machine import calibration_us
from waypost.bench.programs import Programs, cpu_s
from waypost.bench.registry import DEVICES_PER_USER
from waypost.bench.rows import Row
from waypost.bench.stack import BenchStack, running, settled

MARK = {"mark": "9999999999", "screen": "parcels"}
NOTIFICATION = {"title": "Your parcel is here", "body": "It was left at the front door.", "data": MARK}
WARM_UP = 1_000
EVERYBODY = "2 workers, one request to everybody in the registry"


def run(programs: Programs, users: int) -> list[Row]:
    """Measure two workers with so many users."""
    with running(programs, 2, users) as stack:
        burst(stack, 0, WARM_UP, users=users)
        return everybody(stack, WARM_UP, users).rows("bulk", EVERYBODY)


def everybody(stack: BenchStack, before: int, users: int) -> Burst:
    """Tell everybody, where so many notifications went *before*; the ledger must balance then."""
    loops_us = [calibration_us()]
    own_before, gateway_before = stack.cpu_s(), cpu_s(stack.gateway.pid)
    answered = stack.gateway.total("accepted", "dead")
    job_id = begin(stack)
    per_s = steady_rate(stack, answered, users * DEVICES_PER_USER * MIXED_LEAST)
    while state(stack, job_id) != "finished":
        time.sleep(0.2)
    settled(stack, before + users)
    deliveries = stack.gateway.total("accepted", "dead") - answered
    loops_us.append(calibration_us())
    each_us = 1e6 / deliveries
    own, others = stack.cpu_s() - own_before, cpu_s(stack.gateway.pid) - gateway_before
    return Burst(users, deliveries, per_s, own * each_us, others * each_us, 0.0, sum(loops_us) / 2)


def begin(stack: BenchStack) -> str:
    """Tell everybody; return the job's id."""
    job: dict[str, Any] = ask(stack, "POST", "/v1/bulk", {"notification": NOTIFICATION, "registry": {}})
    return str(job["id"])


def state(stack: BenchStack, job_id: str) -> str:
    """Return what the job is at: whether it is finished."""
    return str(ask(stack, "GET", f"/v1/bulk/{job_id}")["state"])


def ask(stack: BenchStack, method: str, path: str, body: object = None) -> dict[str, Any]:
    """Ask the API, with the stack's key."""
    request = urllib.request.Request(  # noqa: S310 - our own server
        stack.url + path,
        None if body is None else json.dumps(body).encode(),
        {"Authorization": f"Bearer {stack.key}", "Content-Type": "application/json"},
        method=method,
    )
    with urllib.request.urlopen(request) as answer:  # noqa: S310 - as above
        read: dict[str, Any] = json.load(answer)
    return read
