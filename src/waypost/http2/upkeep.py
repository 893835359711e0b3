"""The rules by which connections are asked for life, retired and given up, and when they have to be judged."""

from collections.abc import Sequence
from typing import Final

from .link import Link
from .settings import PoolSettings

# A connection beyond the minimum that was not needed for this long is given up below the low mark.
_SURPLUS_AFTER_S: Final = 30.0
# A closing connection whose server does not take part is cut after this.
_GOODBYE_S: Final = 5.0
_NEVER: Final = float("inf")


class UpkeepRules:
    """The times of `PoolSettings`, applied to connections at one moment."""

    def __init__(self, settings: PoolSettings) -> None:
        self._settings = settings
        times = [
            settings.idle_timeout_s,
            settings.max_age_s,
            settings.ping_after_idle_s,
            settings.ping_after_silence_s,
            settings.ping_timeout_s,
        ]
        shortest = min([time_s for time_s in times if time_s is not None])
        # How often connections in use are judged.
        self.every_s = min(1.0, max(0.02, shortest / 4))

    def next_check(self, ready: Sequence[Link], leaving: Sequence[Link], now: float) -> float:
        """Return the earliest moment at which a rule can say something new, if no request is sent until then."""
        earliest = now + self.every_s
        if any([_is_busy(link) for link in [*ready, *leaving]]):
            return earliest
        due = min([self._due(link) for link in [*ready, *leaving]], default=_NEVER)
        if ready and self._may_shrink(ready):
            due = min(due, ready[-1].used_at + _SURPLUS_AFTER_S)
        return max(due, earliest)

    def _due(self, link: Link) -> float:
        settings = self._settings
        due = _NEVER
        if settings.idle_timeout_s is not None:
            due = link.used_at + settings.idle_timeout_s
        if link.lifetime_s:
            due = min(due, link.opened_at + link.lifetime_s)
        if settings.ping_after_idle_s is not None:
            due = min(due, max(link.heard_at, link.pinged_at) + settings.ping_after_idle_s)
        return due

    def check_life(self, link: Link, now: float) -> bool:
        """Send a PING over a silent connection, and cut one that does not close; whether a PING went unanswered."""
        settings = self._settings
        in_use = len(link.connection.streams)
        if in_use:
            link.used_at = now
        if link.closing_since and now - link.closing_since >= _GOODBYE_S:
            link.abort("closed")
        elif link.connection.pong_awaited and link.heard_at <= link.pinged_at:
            return now - link.pinged_at >= settings.ping_timeout_s
        else:
            must_speak = in_use or link.is_doubtful()
            silent_since = max(link.heard_at, link.pinged_at, link.waiting_since if must_speak else 0.0)
            after_s = settings.ping_after_silence_s if must_speak else settings.ping_after_idle_s
            if after_s is not None and now - silent_since >= after_s:
                link.ping(now)
        return False

    def is_idle(self, link: Link, now: float) -> bool:
        """Tell whether the connection has carried nothing for too long."""
        idle_s = self._settings.idle_timeout_s
        return idle_s is not None and now - link.used_at >= idle_s and not link.connection.streams

    def is_aged(self, link: Link, now: float) -> bool:
        """Tell whether the connection has reached its lifetime."""
        return link.lifetime_s > 0 and now - link.opened_at >= link.lifetime_s

    def surplus(self, ready: Sequence[Link], now: float) -> Link | None:
        """Find the connection that is one too many: the last, long unused, the others below the low mark."""
        if not self._may_shrink(ready):
            return None
        last = ready[-1]
        if last.connection.streams or now - last.used_at < _SURPLUS_AFTER_S:
            return None
        others = ready[:-1]
        in_use = sum([len(link.connection.streams) for link in others])
        streams = sum([link.connection.stream_limit for link in others])
        return last if in_use < streams * self._settings.low_water else None

    def _may_shrink(self, ready: Sequence[Link]) -> bool:
        return len(ready) > max(1, self._settings.min_connections)


def _is_busy(link: Link) -> bool:
    connection = link.connection
    return bool(connection.streams or connection.pong_awaited or link.closing_since or link.is_doubtful())
