"""How long from when a notification was due to be submitted until the gateway has each of its requests."""

from __future__ import annotations

import struct
import tempfile
from dataclasses import dataclass
from typing import Any

from benchmarks.programs import Load
from benchmarks.stack import Stack, until_quiet


@dataclass(frozen=True)
class Latency:
    """Of all requests to APNs and FCM whose notifications came from one load; Web Push hides what it carries."""

    submitted: int
    p50_ms: float
    p95_ms: float
    p99_ms: float


def latency(stack: Stack, first: int, *, rate: float, seconds: float, **wishes: Any) -> Latency:
    """Submit *rate* notifications a second, on time whatever the answers do, and wait until all have arrived."""
    stack.gateway.forget_marks()
    with tempfile.NamedTemporaryFile() as marks:
        count = int(rate * seconds)
        Load(
            stack.url, stack.key, first=first, count=count, rate=rate, connections=64, marks=marks.name, **wishes
        ).result()
        until_quiet(stack)
        due_us = {
            first + n: due for first, many, due, _ in struct.iter_unpack("<QQQQ", marks.read()) for n in range(many)
        }
    waited = sorted(at - due_us[mark] for mark, at in stack.gateway.marks() if mark in due_us)
    if len(waited) < count:
        raise RuntimeError(f"{count} notifications, but only {len(waited)} requests at the gateway")
    p50, p95, p99 = (waited[int(len(waited) * share)] / 1000 for share in (0.5, 0.95, 0.99))
    return Latency(count, p50, p95, p99)
