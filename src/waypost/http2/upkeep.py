"""The rules by which connections are asked for life, retired and given up, judged now and then."""

from collections.abc import Sequence
from typing import Final

from .link import Link
from .settings import PoolSettings

# A connection beyond the minimum that was not needed for this long is given up below the low mark.
_SURPLUS_AFTER_S: Final = 30.0
# A closing connection whose server does not take part is cut after this.
_GOODBYE_S: Final = 5.0


class UpkeepRules:
    """`PoolSettings`' times, applied to one connection at one moment."""

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
        self.every_s = min(1.0, max(0.02, shortest / 4))

    def check_life(self, link: Link, now: float) -> None:
        """Send a PING over a silent connection, and cut one that did not answer or does not close."""
        settings = self._settings
        in_use = len(link.connection.streams)
        if in_use:
            link.used_at = now
        if link.closing_since and now - link.closing_since >= _GOODBYE_S:
            link.abort("closed")
        elif link.connection.pong_awaited and link.heard_at <= link.pinged_at:
            if now - link.pinged_at >= settings.ping_timeout_s:
                link.abort(f"connection lost: PING not answered within {settings.ping_timeout_s:g} s")
        else:
            silent_since = max(link.heard_at, link.pinged_at, link.waiting_since if in_use else 0.0)
            after_s = settings.ping_after_silence_s if in_use else settings.ping_after_idle_s
            if after_s is not None and now - silent_since >= after_s:
                link.ping(now)

    def reason_to_retire(self, link: Link, now: float) -> str:
        """Why the connection should take no more requests; empty if it should."""
        idle_s = self._settings.idle_timeout_s
        if idle_s is not None and now - link.used_at >= idle_s and not link.connection.streams:
            return f"idle for {idle_s:g} s"
        return ""

    def is_aged(self, link: Link, now: float) -> bool:
        """Whether the connection has reached its lifetime."""
        return link.lifetime_s > 0 and now - link.opened_at >= link.lifetime_s

    def surplus(self, ready: Sequence[Link], now: float) -> Link | None:
        """The connection that is one too many: the last, long unused, the others below the low mark."""
        if len(ready) <= max(1, self._settings.min_connections):
            return None
        last = ready[-1]
        if last.connection.streams or now - last.used_at < _SURPLUS_AFTER_S:
            return None
        others = ready[:-1]
        in_use = sum([len(link.connection.streams) for link in others])
        streams = sum([link.connection.stream_limit for link in others])
        return last if in_use < streams * self._settings.low_water else None
