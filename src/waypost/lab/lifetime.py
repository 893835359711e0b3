"""The ends of a connection that no request causes: its age, its idleness, and PINGs nobody asked for."""

import asyncio
from collections.abc import Callable

from waypost.lab.framing import WireRules


class Lifetime:
    """A watch on one connection; *end* is called with the debug text of the GOAWAY it has earned."""

    def __init__(self, rules: WireRules, *, busy: Callable[[], bool], end: Callable[[str], None]) -> None:
        self._rules, self._busy, self._end = rules, busy, end
        self._loop = asyncio.get_running_loop()
        self._last_request_at = self._loop.time()
        self._pings = 0
        self._age = self._idle = None
        if rules.max_age_s is not None:
            self._age = self._loop.call_later(rules.max_age_s, end, "max_age")
        if rules.idle_s is not None:
            self._idle = self._loop.call_later(rules.idle_s, self._check_idle, rules.idle_s)

    def request(self) -> None:
        """Note that a request has begun."""
        self._pings = 0
        self._last_request_at = self._loop.time()

    def ping(self) -> bool:
        """Count a PING; false when it is one too many."""
        self._pings += 1
        return self._rules.max_unasked_pings is None or self._pings < self._rules.max_unasked_pings

    def stop(self) -> None:
        """Stop watching."""
        for timer in (self._age, self._idle):
            if timer is not None:
                timer.cancel()

    def _check_idle(self, idle_s: float) -> None:
        quiet_s = self._loop.time() - self._last_request_at
        if quiet_s >= idle_s and not self._busy():
            self._end("session_timeout")
        else:
            self._idle = self._loop.call_later(max(idle_s - quiet_s, 0.01), self._check_idle, idle_s)
