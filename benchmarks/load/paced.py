"""A load that comes on time, whatever the answers do: its latencies count from when each request was due."""

from __future__ import annotations

import struct
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from waypost.bench.latency import arrivals
from waypost.bench.programs import ASKED_AGAIN
from waypost.bench.rows import Row, row
from waypost.bench.stack import BenchStack

PARTS = (0.5, 0.95, 0.99)


@dataclass(frozen=True)
class Seen:
    """The result of such a load."""

    submitted: int
    seconds: float
    """From the first request to the last answer."""
    answered_ms: Sequence[float]
    """From when a request was due until it was accepted, sorted."""
    delivered_ms: Sequence[float]
    """From when a notification was due until the gateway had each of its requests to APNs and FCM, sorted."""
    lasted_s: float
    """From when the first was due until the gateway had the last request; 0 where that was not waited for."""
    refused: int
    """Answers 429 and 503, after each of which it was asked again."""

    def rows(self, scenario: str, what: str = "") -> list[Row]:
        """Return the latencies as rows of the table."""
        return [
            *percentiles(scenario, f"{what}from due to the answer", self.answered_ms),
            *percentiles(scenario, f"{what}from due to the gateway", self.delivered_ms),
        ]


class Paced:
    """A load that has begun."""

    def __init__(self, stack: BenchStack, first: int, **wishes: Any) -> None:
        self._stack = stack
        self._marks = tempfile.NamedTemporaryFile()  # noqa: SIM115 - closed by `seen`
        self._load = stack.load(first=first, marks=self._marks.name, **wishes)

    @property
    def running(self) -> bool:
        """Tell whether it still submits."""
        return self._load.running

    def seen(self, *, least: int = 0, arriving: bool = True) -> Seen:
        """Wait for its end, and with *arriving* until the gateway has all of it: *least* requests or more."""
        seen = self._load.result()
        with self._marks as marks:
            answers = list(struct.iter_unpack("<QQQQ", marks.read()))
        due_us = {first + n: due for first, many, due, _ in answers for n in range(many)}
        came = arrivals(self._stack.gateway, due_us, least) if arriving else []
        return Seen(
            seen["submitted"],
            seen["seconds"],
            sorted((at - due) / 1e3 for _, _, due, at in answers),
            sorted((at - due_us[mark]) / 1e3 for mark, at in came),
            (max(at for _, at in came) - min(due_us.values())) / 1e6 if came else 0.0,
            sum(count for status, count in seen["statuses"].items() if status in ASKED_AGAIN),
        )


def percentiles(scenario: str, what: str, sorted_ms: Sequence[float], wanted: str | None = None) -> list[Row]:
    """Return three percentiles and the most, as rows."""
    if not sorted_ms:
        return []
    named = [(f"p{share * 100:.0f}", sorted_ms[int(len(sorted_ms) * share)]) for share in PARTS]
    return [row(scenario, f"{what}: {name}", value, "ms", wanted) for name, value in (*named, ("most", sorted_ms[-1]))]
