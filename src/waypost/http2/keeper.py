"""The keeper looks after connections: it asks the rules of upkeep in time, and does what they say."""

import asyncio
from math import inf
from typing import Protocol

from .attempts import Attempts
from .deadlines import LONGEST_GAP_S
from .link import Link
from .settings import PoolSettings
from .upkeep import UpkeepRules


class Kept(Protocol):
    """The connections that a keeper looks after."""

    ready: list[Link]
    leaving: list[Link]
    attempts: Attempts

    def retire(self, link: Link, reason: str) -> None:
        """Let *link* finish what it has, then close it."""

    def fill(self) -> None:
        """Open what is missing."""


class Keeper:
    """A keeper that checks connections often while they are in use, else when a rule can say something new."""

    def __init__(self, kept: Kept, settings: PoolSettings, loop: asyncio.AbstractEventLoop) -> None:
        self._kept = kept
        self._settings = settings
        self._loop = loop
        self._rules = UpkeepRules(settings)
        self.short_of_sockets = False
        self._timer: asyncio.TimerHandle | None = None
        self._due_at = 0.0

    def watch(self) -> None:
        """Check connections more often, since one is in use again, closes, or is missing."""
        if self._due_at > self._loop.time() + self._rules.every_s:
            self.plan()

    def plan(self) -> None:
        """Check connections when there is something to check, or to open."""
        if self._timer is not None:
            self._timer.cancel()
        now = self._loop.time()
        self._due_at = self._rules.next_check(self._kept.ready, self._kept.leaving, now)
        if self.short_of_sockets:
            self._due_at = now + self._rules.every_s
        self._timer = None if self._due_at == inf else self._loop.call_at(self._due_at, self._keep_up)

    def stop(self) -> None:
        """Stop checking connections."""
        if self._timer is not None:
            self._timer.cancel()
        self._due_at = 0.0

    def _keep_up(self) -> None:
        kept = self._kept
        now = self._loop.time()
        gap_s = now - self._due_at
        for link in [*kept.ready, *kept.leaving]:
            if gap_s > LONGEST_GAP_S:
                link.excuse(gap_s, now)
            if self._rules.check_life(link, now):
                self._unheard(link)
        for link in list(kept.ready):
            if self._rules.is_idle(link, now):
                kept.retire(link, f"idle for {self._settings.idle_timeout_s:g} s")
            elif self._rules.is_aged(link, now):
                self._rotate(link, now)
        surplus = self._rules.surplus(kept.ready, now)
        if surplus is not None:
            kept.retire(surplus, "not needed any more")
        kept.fill()
        self.plan()

    def _unheard(self, link: Link) -> None:
        """Cut a wholly silent connection, unless it carries requests: a server that only stood still answers them."""
        reason = f"connection lost: PING not answered within {self._settings.ping_timeout_s:g} s"
        if not link.connection.streams:
            link.abort(reason)
        elif not link.leaving:
            self._kept.retire(link, reason)

    def _rotate(self, link: Link, now: float) -> None:
        """Open the successor of an aged connection first, where there is a socket for it."""
        attempts = self._kept.attempts
        successor = any([other.room() > 0 and not self._rules.is_aged(other, now) for other in self._kept.ready])
        if not successor and (attempts.running or not attempts.may_begin() or attempts.begin()):
            return
        self._kept.retire(link, "reached its maximum age")
