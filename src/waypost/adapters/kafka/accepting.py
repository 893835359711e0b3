"""Accepting on a log: hold the keys, produce, and be done when the brokers have it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import msgspec

from waypost.adapters.kafka.messages import Task, encode, key_of
from waypost.adapters.kafka.producer import Acknowledging, Outgoing
from waypost.adapters.kafka.topics import Topics
from waypost.domain.dedup import ClaimKind
from waypost.domain.errors import Unavailable
from waypost.domain.ids import NotificationId
from waypost.domain.notification import Notification
from waypost.ports.holds import Held, Holds
from waypost.ports.views import Views
from waypost.ports.work import Acceptance, Accepted, Arrival
from waypost.telemetry import Event, Telemetry

_RECENT = 50_000
"""Accepted notifications that this process remembers until they are recorded: some seconds' worth."""


class Accepting:
    """The way in."""

    def __init__(
        self,
        producer: Acknowledging,
        topics: Topics,
        holds: Holds,
        views: Views,
        telemetry: Telemetry,
        *,
        may_open: bool,
    ) -> None:
        """*may_open*: accept content unlooked at while keys cannot be held."""
        self._producer = producer
        self._topics = topics
        self._holds = holds
        self._views = views
        self._telemetry = telemetry
        self._may_open = may_open
        self._is_open = False
        """Content is accepted without a look whether it was said before."""
        self.recent: dict[NotificationId, Notification] = {}
        """What was accepted here lately, recorded or not."""

    async def accept(self, arrivals: Sequence[Arrival]) -> list[Acceptance]:
        """Answer each; Unavailable where anything of the call is not known to be in the log.

        Then the keys stay held: whoever repeats the request after the hold does so under the same id.
        """
        held = await self._hold(arrivals)
        going = [
            msgspec.structs.replace(arrival, notification=_named(arrival.notification, answer))
            for arrival, answer in zip(arrivals, held, strict=True)
            if isinstance(answer, bytes)
        ]
        known = await self._known(arrivals, going)
        new = [each for each in going if each.notification.id not in known]
        await self._producer.produce([self._message(each.notification) for each in new])
        for each in new:
            self.recent[each.notification.id] = each.notification
        while len(self.recent) > _RECENT:
            del self.recent[next(iter(self.recent))]
        await self._confirm(going)
        fresh = {each.notification.id for each in new}
        return [
            Accepted(NotificationId(answer), NotificationId(answer) in fresh) if isinstance(answer, bytes) else answer
            for answer in held
        ]

    async def _known(self, arrivals: Sequence[Arrival], going: Sequence[Arrival]) -> set[NotificationId]:
        """Those of *going* that are in the log already: accepted here, or under an id that was taken over."""
        own = {each.notification.id for each in arrivals}
        known = {each.notification.id for each in going if each.notification.id in self.recent}
        for each in going:
            if each.notification.id not in own:
                known |= set(await self._views.statuses(each.notification.app, [each.notification.id]))
        return known

    async def _hold(self, arrivals: Sequence[Arrival]) -> list[Held]:
        """Hold the keys; while they cannot be, content may go on unlooked at, and a caller's own key does not."""
        own: list[Held] = [each.notification.id for each in arrivals]
        if not any(each.claims for each in arrivals):
            return own
        try:
            held = await self._holds.hold(arrivals)
        except Unavailable:
            if not self._may_open or any(
                claim.kind is ClaimKind.IDEMPOTENCY for each in arrivals for claim in each.claims
            ):
                raise
            if not self._is_open:
                self._is_open = True
                self._telemetry.event(Event.DEDUP_OPEN)
            return own
        if self._is_open:
            self._is_open = False
            self._telemetry.event(Event.DEDUP_RESUMED)
        return held

    async def _confirm(self, durable: Sequence[Arrival]) -> None:
        claims = [(claim, each.notification.id) for each in durable for claim in each.claims]
        if claims and not self._is_open:
            with suppress(Unavailable):  # it is durable all the same; a repeat after the hold takes the same id
                await self._holds.confirm(claims)

    def _message(self, notification: Notification) -> Outgoing:
        key = key_of(notification.app, notification.user_id)
        return Outgoing(self._topics.of(notification.lane), key, encode(Task(notification)))


def _named(notification: Notification, given: bytes) -> Notification:
    """The notification under the id that its keys were held for."""
    if notification.id == given:
        return notification
    return msgspec.structs.replace(notification, id=NotificationId(given))
