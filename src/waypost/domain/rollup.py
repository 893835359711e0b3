"""The roll-up: from what became of deliveries to what is counted of it. Pure.

All that is counted of a delivery is counted for the quarter of an hour in which it was sent, so that a rate is of the
same notifications above and below its line, and never more than 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from msgspec import Struct

from waypost.domain.address import FEED
from waypost.domain.ids import AppId, NotificationId, UserId
from waypost.domain.moves import ActionTaken, DeliveryMoved
from waypost.domain.status import CONFIRMED, DeliveryStatus
from waypost.domain.time import DAY_MS, HOUR_MS, Instant
from waypost.domain.tracked import SLOT_MS, NotificationEvent, TrackedEvent

MONTH_MS: Final = 30 * DAY_MS
"""Milliseconds of a user's habits that are forgotten together."""
WHOLE: Final = -1
"""The number in place of a target's for what is counted of the notification as a whole."""
EVERYBODY: Final = UserId("")
"""The name in place of a user's for the habits of all users of an app."""

_E = NotificationEvent
_BITS: Final = {event: 1 << n for n, event in enumerate(NotificationEvent)}
_TAKEN: Final = CONFIRMED | {DeliveryStatus.SENT}


class Labels(Struct, frozen=True):
    """The names under which a notification is counted; "" where it has none."""

    type: str = ""
    campaign: str = ""
    variant: str = ""
    template: str = ""


class Facts(Struct, frozen=True):
    """The facts about a notification that its moves do not tell."""

    app: AppId
    user_id: UserId | None
    """The user; None where it is nobody's: of an audience, or of who was erased meanwhile."""
    labels: Labels
    targets: Mapping[int, Target]


class Target(Struct, frozen=True):
    """The facts about a target."""

    channel: str = ""
    platform: str = ""
    is_feed: bool = False
    sent_at: Instant | None = None


class Cell(NamedTuple):
    """A cell: all that is counted together."""

    app: AppId
    slot: int
    event: NotificationEvent
    type: str
    channel: str
    platform: str
    campaign: str
    variant: str
    template: str


class Happening(NamedTuple):
    """A change of one delivery, as the events that it stands for."""

    notification_id: NotificationId
    n: int
    at: Instant
    events: tuple[NotificationEvent, ...]
    may_repeat: bool
    """Whether it may be told again: a move comes once, a button may be pressed twice."""


class Tally(Struct, frozen=True):
    """The sums that a page of happenings adds to the counts."""

    cells: dict[Cell, tuple[int, int]] = {}
    """How many deliveries, and how many notifications of which none was counted before."""
    hours: dict[tuple[AppId, UserId, int, int], tuple[int, int]] = {}
    """How many notifications were sent, and read, by user, month and hour in UTC of sending."""
    events: list[TrackedEvent] = []
    stages: dict[tuple[NotificationId, int], int] = {}
    """What was counted of notifications with several targets, and of buttons: bits, under the target's number."""


Stages = Mapping[tuple[NotificationId, int], int]


def happening_of(move: DeliveryMoved) -> Happening | None:
    """Name the events that a move stands for; None where it stands for none."""
    before, after = move.before, move.after
    if after not in _TAKEN:
        return None
    is_feed = move.device_id == FEED
    events = [_E.SENT] if before not in _TAKEN else []
    events += [_E.DELIVERED] if after in CONFIRMED and before not in CONFIRMED else []
    if after is DeliveryStatus.OPENED:
        events += [_E.READ] if is_feed else [_E.READ, _E.OPENED]
    return Happening(move.notification_id, move.n, move.at, tuple(events), may_repeat=False)


def happening_of_action(taken: ActionTaken) -> Happening:
    """Name the events that a pressed button stands for: it was tapped, also in the feed."""
    return Happening(taken.notification_id, taken.n, taken.at, (_E.OPENED, _E.ACTION_TAKEN), may_repeat=True)


def tally(happenings: Iterable[Happening], known: Mapping[NotificationId, Facts], stages: Stages) -> Tally:
    """Add up *happenings* of *known* notifications, beside what *stages* say was counted before."""
    found = Tally()
    for each in happenings:
        facts = known.get(each.notification_id)
        if facts is not None:
            _add(found, each, facts, stages)
    return found


def _add(found: Tally, happening: Happening, facts: Facts, stages: Stages) -> None:
    target = facts.targets.get(happening.n, _NO_TARGET)
    sent_at = happening.at if target.sent_at is None else target.sent_at
    for event in happening.events:
        if event is _E.OPENED and happening.may_repeat and not target.is_feed:
            continue  # its move says so
        of_target = not happening.may_repeat or _is_first(found, stages, happening, happening.n, event)
        is_first = of_target
        if len(facts.targets) > 1:
            is_first = _is_first(found, stages, happening, WHOLE, event)
        if not (of_target or is_first):
            continue
        cell = Cell(
            facts.app,
            sent_at // SLOT_MS,
            event,
            facts.labels.type,
            target.channel,
            target.platform,
            facts.labels.campaign,
            facts.labels.variant,
            facts.labels.template,
        )
        deliveries, notifications = found.cells.get(cell, (0, 0))
        found.cells[cell] = deliveries + of_target, notifications + is_first
        if is_first and facts.user_id is not None:
            _add_user(found, happening, facts.app, facts.user_id, event, sent_at)


def _add_user(
    found: Tally, happening: Happening, app: AppId, user_id: UserId, event: NotificationEvent, sent_at: Instant
) -> None:
    found.events.append(TrackedEvent(app, user_id, event.value, happening.at, happening.notification_id))
    if event not in (_E.SENT, _E.READ):
        return
    for user in (user_id, EVERYBODY):
        key = app, user, sent_at // MONTH_MS, sent_at // HOUR_MS % 24
        sent, read = found.hours.get(key, (0, 0))
        found.hours[key] = sent + (event is _E.SENT), read + (event is _E.READ)


def _is_first(found: Tally, stages: Stages, happening: Happening, n: int, event: NotificationEvent) -> bool:
    """Tell whether *event* was not counted yet under *n*, and note that it is now."""
    key, bit = (happening.notification_id, n), _BITS[event]
    counted = found.stages.get(key, stages.get(key, 0))
    if counted & bit:
        return False
    found.stages[key] = counted | bit
    return True


_NO_TARGET: Final = Target()
