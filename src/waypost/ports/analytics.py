"""Analytics: what was counted of notifications and events, summed up as it is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol
from zoneinfo import ZoneInfo

from msgspec import Struct

from waypost.domain.best_hour import Hours
from waypost.domain.buckets import Bucket
from waypost.domain.ids import AppId, UserId
from waypost.domain.time import Instant
from waypost.domain.tracked import NotificationEvent

LABELS: Final = ("type", "channel", "platform", "campaign", "variant", "template")
"""The names of what counts are told apart by."""


class CountQuery(Struct, frozen=True):
    """A question for the counts of what was sent from *since* up to before *until*."""

    app: AppId
    since: Instant
    until: Instant
    filters: dict[str, str] = {}
    """The value that a label must have, by the label's name."""
    by: str | None = None
    """The label that counts are told apart by."""
    bucket: Bucket | None = None
    """The spans of time that they are told apart by, in *zone*."""
    zone: ZoneInfo = ZoneInfo("UTC")


class Count(Struct, frozen=True):
    """A sum of counts."""

    label: str | None
    """The value of the label asked for."""
    start: Instant | None
    """The beginning of the span of time."""
    event: NotificationEvent
    deliveries: int
    notifications: int


class EventQuery(Struct, frozen=True):
    """A question for events that happened from *since* up to before *until*, the app's own among them."""

    app: AppId
    since: Instant
    until: Instant
    name: str | None = None
    bucket: Bucket | None = None
    zone: ZoneInfo = ZoneInfo("UTC")


class EventCount(Struct, frozen=True):
    """The number of events of one name."""

    name: str
    start: Instant | None
    count: int


class Analytics(Protocol):
    """The counts, which are as old as their reader of the journal is behind."""

    async def counts(self, query: CountQuery) -> list[Count]:
        """Return the sums that *query* asks for, in no order."""
        ...

    async def events(self, query: EventQuery) -> list[EventCount]:
        """Return how often events happened, in no order."""
        ...

    async def hours(self, app: AppId, users: Sequence[UserId] | None, since: Instant) -> list[Hours]:
        """Return when each of *users* was sent to and opened, by hour of the day in UTC; None is all of the app."""
        ...
