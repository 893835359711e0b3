"""A project's quota: a bucket of messages that fills up within a minute, whenever the minute begins."""

import math
from collections.abc import Callable

_MINUTE_S = 60.0


class FcmQuota:
    """A quota that counts every message but those it refused itself."""

    def __init__(self, per_minute: int, clock: Callable[[], float]) -> None:
        self._capacity, self._per_s, self._clock = per_minute, per_minute / _MINUTE_S, clock
        self._left, self._at = float(per_minute), clock()

    def take(self) -> bool:
        """Take one message out of the quota; false when there is none left."""
        now = self._clock()
        self._left = min(self._capacity, self._left + max(0.0, now - self._at) * self._per_s)
        self._at = now
        if self._left < 1:
            return False
        self._left -= 1
        return True

    def wait_s(self) -> int:
        """Return in how many whole seconds one message will be left."""
        return max(1, math.ceil((1 - self._left) / self._per_s))
