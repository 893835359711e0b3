"""Accepting on a log: hold the keys, produce, and be done when the brokers have it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress

import msgspec

from waypost.domain.dedup import ClaimKind
from waypost.domain.errors import Unavailable
from waypost.domain.ids import NotificationId
from waypost.domain.notification import Notification
from waypost.ports.holds import Held, Holds
from waypost.ports.views import Views
from waypost.ports.work import Acceptance, Accepted, Duplicate, NewNotification, Unwritten
from waypost.stores.kafka.messages import Task, encode, key_of
from waypost.stores.kafka.producer import Acknowledging, Outgoing
from waypost.stores.kafka.topics import TopicNames
from waypost.telemetry import Event, Telemetry

_RECENT = 50_000
"""Accepted notifications that this process remembers until they are recorded: some seconds' worth."""


class Accepting:
    """The intake of the log: it accepts notifications and writes them."""

    def __init__(
        self,
        producer: Acknowledging,
        topics: TopicNames,
        holds: Holds,
        views: Views,
        telemetry: Telemetry,
        *,
        may_open: bool,
        records_claims: bool,
    ) -> None:
        """Create the intake; *may_open*: accept content unchecked while keys cannot be held.

        *records_claims*: the holds may be lost, so the recorder keeps the keys in the store.
        """
        self._producer = producer
        self._topics = topics
        self._holds = holds
        self._views = views
        self._telemetry = telemetry
        self._may_open = may_open
        self._records_claims = records_claims
        self._is_open = False
        """Whether content is accepted without checking if it was said before."""
        self.recent: dict[NotificationId, Notification] = {}
        """The notifications accepted here lately, recorded or not."""

    async def accept(self, arrivals: Sequence[NewNotification]) -> list[Acceptance]:
        """Answer each; what is not known to be in the log is ``Unwritten``, or Unavailable where none of it is.

        Its keys stay held: whoever repeats the request after the hold does so under the same id.
        """
        held = await self._hold(arrivals)
        going = [
            msgspec.structs.replace(arrival, notification=_named(arrival.notification, answer))
            for arrival, answer in zip(arrivals, held, strict=True)
            if isinstance(answer, bytes)
        ]
        known = await self._known(arrivals, going)
        new: dict[NotificationId, NewNotification] = {}
        for each in going:
            if each.notification.id not in known:
                new.setdefault(each.notification.id, each)
        failed = await self._produce(list(new.values()))
        await self._confirm([each for each in going if each.notification.id not in failed])
        fresh = set(new)
        return some_written(
            [_answer(each.notification.id, answer, fresh, failed) for each, answer in zip(arrivals, held, strict=True)]
        )

    async def _produce(self, new: Sequence[NewNotification]) -> dict[NotificationId, Unavailable]:
        """Write notifications, and remember those written; return the others, and why."""
        answers = await self._producer.produce_each([self._message(each) for each in new])
        failed: dict[NotificationId, Unavailable] = {}
        for each, why in zip(new, answers, strict=True):
            if why is None:
                self.recent[each.notification.id] = each.notification
            else:
                failed[each.notification.id] = why
        while len(self.recent) > _RECENT:
            del self.recent[next(iter(self.recent))]
        return failed

    async def _known(
        self, arrivals: Sequence[NewNotification], going: Sequence[NewNotification]
    ) -> set[NotificationId]:
        """Find those of *going* that are in the log already: accepted here, or under an id that was taken over."""
        own = {each.notification.id for each in arrivals}
        known = {each.notification.id for each in going if each.notification.id in self.recent}
        for each in going:
            if each.notification.id not in own:
                known |= set(await self._views.statuses(each.notification.app, [each.notification.id]))
        return known

    async def _hold(self, arrivals: Sequence[NewNotification]) -> list[Held]:
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

    async def _confirm(self, durable: Sequence[NewNotification]) -> None:
        claims = [(claim, each.notification.id) for each in durable for claim in each.claims]
        if claims and not self._is_open:
            with suppress(Unavailable):  # it is durable all the same; a repeat after the hold takes the same id
                await self._holds.confirm(claims)

    def _message(self, arrival: NewNotification) -> Outgoing:
        notification = arrival.notification
        key = key_of(notification.app, notification.user_id)
        task = Task(notification, claims=arrival.claims if self._records_claims else ())
        return Outgoing(self._topics.of(notification.lane), key, encode(task))


def some_written(answers: list[Acceptance]) -> list[Acceptance]:
    """Return *answers*, where any is not ``Unwritten``; else raise Unavailable for the first's reason."""
    unwritten = [answer.error for answer in answers if isinstance(answer, Unwritten)]
    if unwritten and len(unwritten) == len(answers):
        raise unwritten[0]
    return answers


def _answer(
    own: NotificationId, held: Held, fresh: set[NotificationId], failed: Mapping[NotificationId, Unavailable]
) -> Acceptance:
    """Answer one arrival, of which *own* is the id, and take it out of what is *fresh*.

    The duplicate of one that is not known to be written is not known to be, either; a repeat is not its own duplicate.
    """
    named = held.first_id if isinstance(held, Duplicate) else held
    if isinstance(named, bytes) and (why := failed.get(NotificationId(named))) is not None:
        return Unwritten(why)
    if isinstance(held, Duplicate) and held.first_id == own:
        held = own
    if not isinstance(held, bytes):
        return held
    is_new = held in fresh
    fresh.discard(NotificationId(held))
    return Accepted(NotificationId(held), is_new)


def _named(notification: Notification, given: bytes) -> Notification:
    """Return the notification under the id that its keys were held for."""
    if notification.id == given:
        return notification
    return msgspec.structs.replace(notification, id=NotificationId(given))
