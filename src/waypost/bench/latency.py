"""The time from when a notification was due to be submitted until the gateway has each of its requests."""

from __future__ import annotations

import struct
import tempfile
import time
from collections.abc import Container, Sequence
from dataclasses import dataclass
from typing import Any

from waypost.bench import shapes
from waypost.bench.programs import GatewayProgram
from waypost.bench.stack import BenchStack

CONNECTIONS = 64
PAUSE_S = 2.0
"""Seconds between two looks: a delivery that was throttled comes a second later."""
TIMEOUT_S = 120.0


@dataclass(frozen=True)
class Latency:
    """The latency of all requests to APNs and FCM from one load; Web Push hides what it carries."""

    submitted: int
    p50_ms: float
    p95_ms: float
    p99_ms: float
    answered_p99_ms: float
    """Of the same, until the caller had the answer."""


def latency(
    stack: BenchStack,
    first: int,
    *,
    rate: float,
    seconds: float,
    least: int = 1,
    mixed: bool = False,
    **wishes: Any,
) -> Latency:
    """Submit *rate* notifications a second, on time whatever the answers do, and wait until all have arrived.

    *least* is how many requests there must be, where that is known: the last are not left out however long they take.
    With *mixed* they are as callers send them (waypost.bench.shapes), a multiple of `BLOCK`.
    """
    stack.gateway.forget_marks()
    count = shapes.whole(rate * seconds) if mixed else int(rate * seconds)
    if mixed:
        wishes |= shapes.wishes()
    with tempfile.NamedTemporaryFile() as marks:
        named: dict[str, Any] = {
            "first": first,
            "count": count,
            "rate": rate,
            "connections": CONNECTIONS,
            "marks": marks.name,
        }
        stack.load(**named, **wishes).result()
        answers = list(struct.iter_unpack("<QQQQ", marks.read()))
    due_us = {start + n: due for start, many, due, _ in answers for n in range(many)}
    waited = sorted(at - due_us[mark] for mark, at in arrivals(stack.gateway, due_us, least))
    p50, p95, p99 = (_at(share, waited) for share in (0.5, 0.95, 0.99))
    return Latency(count, p50, p95, p99, _at(0.99, sorted(answered - due for _, _, due, answered in answers)))


def _at(share: float, waited_us: Sequence[int]) -> float:
    """Return how many milliseconds *share* of those waited at most."""
    return waited_us[int(len(waited_us) * share)] / 1000


def arrivals(gateway: GatewayProgram, wanted: Container[int], least: int) -> list[tuple[int, int]]:
    """Return the marks *wanted* and when they came, once no more of them come.

    TimeoutError where fewer than *least* have come.
    """
    until = time.monotonic() + TIMEOUT_S
    before = -1
    while time.monotonic() < until:
        seen = [each for each in gateway.marks() if each[0] in wanted]
        if len(seen) >= least and len(seen) == before:
            return seen
        before = len(seen)
        time.sleep(PAUSE_S)  # asking without pause would take the CPU that is measured
    raise TimeoutError(f"the gateway has had {before} of them, not {least}")
