"""Recovery: finding what nobody moves, who looks after it, and the alerts that operators see."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Protocol

from msgspec import Struct

from waypost.domain.ids import AppId, NotificationId
from waypost.domain.recovery import AlertType, Standing, Stuck, Thresholds
from waypost.domain.time import Instant


class Claimed(Struct, frozen=True):
    """A suspect that this worker alone looks after now."""

    standing: Standing
    was_retried: bool
    """Whether it was offered to workers again before."""


class How(StrEnum):
    """A way in which an alert was resolved."""

    ENDED = "ended"
    """By itself: its notification is final."""
    RETRIED = "retried"
    RESOLVED = "resolved"
    """By an operator: the notification has failed."""


class Alert(Struct, frozen=True):
    """An alert about one notification, whose id is also its own."""

    app: AppId
    notification_id: NotificationId
    type: AlertType
    reason: str
    redis_status: str | None
    """What the second record says; None where there is none."""
    db_status: str
    retry_count: int
    raised_at: Instant
    resolved_at: Instant | None = None
    how: How | None = None


class AlertQuery(Struct, frozen=True):
    """A filter for the alerts of an app, the newest notification first."""

    app: AppId
    resolved: bool | None = None
    before: NotificationId | None = None
    limit: int = 50


class Cleared(Struct, frozen=True):
    """The end of looking after a suspect: it is not stuck, or a remedy was applied."""

    id: NotificationId


class Retried(Struct, frozen=True):
    """The news that a suspect was offered to workers again: should it be found once more, an operator is told."""

    id: NotificationId


Concluded = Cleared | Retried | Alert


class Recovery(Protocol):
    """The suspects and the alerts of a store."""

    async def search(self, thresholds: Thresholds, now: Instant, n: int) -> Sequence[Stuck]:
        """Find at most *n* new suspects, queues taking turns, and note them; what has an open alert is none.

        Only the first in each queue are looked at, and a page of what is open: the next call goes on from there.
        """
        ...

    async def suspects(self, seen_before: Instant, n: int) -> Sequence[NotificationId]:
        """List at most *n* suspects that were noted before a time and that no worker looks after."""
        ...

    async def claim(self, ids: Sequence[NotificationId], by: str, now: Instant) -> Sequence[Claimed]:
        """Take those of *ids* that no other worker has taken within a minute, and say how they stand now.

        Those that are final by now are not suspects any more.
        """
        ...

    async def conclude(self, news: Sequence[Concluded], now: Instant) -> Sequence[Alert]:
        """Write what became of suspects; return the alerts that are new."""
        ...

    async def end(self, now: Instant, n: int) -> Sequence[Alert]:
        """Resolve at most *n* alerts whose notifications are final or gone, and return them."""
        ...

    async def resolve(self, app: AppId, notification_id: NotificationId, how: How, now: Instant) -> bool:
        """Resolve an alert by order of an operator; False where none is open."""
        ...

    async def alert(self, app: AppId, notification_id: NotificationId) -> Alert | None:
        """Return an alert of the app."""
        ...

    async def alerts(self, query: AlertQuery) -> Sequence[Alert]:
        """Return the alerts that *query* asks for."""
        ...

    async def drop_before(self, before: Instant, n: int) -> int:
        """Delete at most *n* alerts that were resolved before *before*; return how many it was."""
        ...
