"""The project's quota, kept on our side: nothing goes on the wire that Google would count and refuse.

Source: firebase.google.com, "Throttling and quotas" (600,000 messages a minute, a token bucket) and "Scale FCM" (ramp
up over at least a minute). One bucket a process: workers share a project's quota by their settings.
"""

from __future__ import annotations

import math
from typing import Final

MINUTE_S: Final = 60.0
_FLOOR: Final = 0.1
"""The part of the full rate that a ramp begins with."""
_BURST_S: Final = 1.0
"""The bucket holds what so many seconds of the present rate bring: the quota is spent evenly."""
_LEAST_WAIT_MS: Final = 100


class Quota:
    """A token bucket whose rate grows from a tenth to all of *per_minute* over *ramp_s* of use."""

    def __init__(self, per_minute: int, ramp_s: float, now_s: float) -> None:
        self._full = per_minute / MINUTE_S
        self._ramp_s = ramp_s
        self._began_s = now_s
        self._at_s = now_s
        self._tokens = self._capacity(now_s)

    def take(self, count: int, now_s: float) -> int:
        """How many of *count* may go now."""
        self._refill(now_s)
        granted = min(count, int(self._tokens))
        self._tokens -= granted
        return granted

    def wait_ms(self, count: int, now_s: float) -> int:
        """When *count* more could go at the present rate, so late at least that coming back is worth it."""
        self._refill(now_s)
        return max(_LEAST_WAIT_MS, math.ceil((count - self._tokens) / self._rate(now_s) * 1000))

    def _refill(self, now_s: float) -> None:
        passed_s = now_s - self._at_s
        if passed_s >= max(self._ramp_s, MINUTE_S):
            self._began_s = now_s  # long silent: begin gently again
        self._tokens = min(self._tokens + passed_s * self._rate(now_s), self._capacity(now_s))
        self._at_s = now_s

    def _rate(self, now_s: float) -> float:
        if self._ramp_s <= 0:
            return self._full
        grown = min(1.0, (now_s - self._began_s) / self._ramp_s)
        return self._full * (_FLOOR + (1 - _FLOOR) * grown)

    def _capacity(self, now_s: float) -> float:
        return max(1.0, self._rate(now_s) * _BURST_S)
