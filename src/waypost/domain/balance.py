"""The balance: what came in against what became of it, by counters of changes and by the rows that are open. Pure.

Each transaction counts what it changes, at the place where it changes it: what came in is counted as it is accepted,
what ended where it ended. What is still open is nobody's count: its rows are looked up. So both sides of a line are
written by different code at different times, and a line adds up only where none of them missed anything.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Final

from msgspec import Struct

from waypost.domain.delivery import Receipt
from waypost.domain.ids import AppId
from waypost.domain.notification import Lane
from waypost.domain.progress import Step
from waypost.domain.status import DeliveryStatus, NotificationStatus
from waypost.domain.time import Instant
from waypost.domain.words import Words


class Count(Words):
    """A count that is kept beside the statuses of notifications, under the same app and lane."""

    REQUESTS = "requests"  # submissions that were read, whatever came of them
    REFUSED = "refused"  # those that were told why not, or to come again
    REPEATED = "repeated"  # those that were answered with an earlier one's id, and left no record
    CONFLICTING = "conflicting"  # those whose key was used with another body
    ACCEPTED = "accepted"  # those that became a notification
    RECIPIENTS = "recipients"  # notifications that came of bulk jobs, counted when they are stored
    TARGETS = "targets"  # deliveries, counted when a notification's list of targets is stored


class Waiting(StrEnum):
    """A place where something open can be."""

    SCHEDULED = "scheduled"  # notifications: their time is to come
    WAITING = "waiting"  # notifications: none of them is settled; deliveries: they are due, now or later
    PROCESSING = "processing"  # notifications: some target is still open
    PARKED = "parked"  # deliveries: they wait for a condition
    UNDER_WAY = "under_way"  # deliveries: on record as handed over, with no outcome yet


DELIVERY: Final = "delivery:"
"""The beginning of the words under which deliveries are counted."""
DELIVERY_COUNTS: Final[Mapping[DeliveryStatus, str]] = {status: f"{DELIVERY}{status}" for status in DeliveryStatus}
"""The word under which the deliveries of each status are counted once they are not open."""
DROPPED: Final = "dropped:"
"""The beginning of the words for what retention dropped, by the word that it was counted under."""
_PENDING: Final = NotificationStatus.PENDING.value
_DEDUPLICATED: Final = NotificationStatus.DEDUPLICATED.value
_OPEN_NOTIFICATIONS: Final = (Waiting.SCHEDULED, Waiting.WAITING, Waiting.PROCESSING)
OPEN_DELIVERIES: Final = (Waiting.WAITING, Waiting.PARKED, Waiting.UNDER_WAY)
"""The places where deliveries wait that have not ended."""
_OTHER_WORDS: Final = frozenset({*Count, _PENDING, _DEDUPLICATED})


def delivery_changes(step: Step, changed: Iterable[Receipt]) -> Iterator[tuple[str, int]]:
    """Yield what *step* changes of the counts of deliveries: how many more or fewer there are under a word.

    *changed* are the receipts that it changed, which takes a while to find out.
    """
    before = step.before.receipts or {}
    if step.routed:
        yield Count.TARGETS, len(step.progress.receipts or ())
    for each in changed:
        was = before.get(each.n)
        if was is not None and not was.is_open:
            yield DELIVERY_COUNTS[was.status], -1
        if not each.is_open:
            yield DELIVERY_COUNTS[each.status], 1


def forgotten(receipts: Iterable[Receipt]) -> Iterator[tuple[str, int]]:
    """Yield the same for *receipts*, none of them open, that are deleted since their notification is routed anew."""
    for each in receipts:
        yield Count.TARGETS, -1
        yield DELIVERY_COUNTS[each.status], -1


class Line(StrEnum):
    """An equation of the balance."""

    REQUESTS = "requests"
    NOTIFICATIONS = "notifications"
    DELIVERIES = "deliveries"


class Requests(Struct, frozen=True):
    """The line ``requests = refused + duplicates + accepted``."""

    requests: int
    refused: int
    duplicates: int
    accepted: int

    @property
    def difference(self) -> int:
        """What is missing of the requests."""
        return self.requests - self.refused - self.duplicates - self.accepted


class Flow(Struct, frozen=True):
    """The line ``came = ended, by status + open, by place``, of notifications or of deliveries."""

    came: int
    ended: Mapping[str, int]
    open: Mapping[Waiting, int]

    @property
    def difference(self) -> int:
        """How many are nowhere; less than 0: so many are somewhere that never came."""
        return self.came - sum(self.ended.values()) - sum(self.open.values())


class Balance(Struct, frozen=True):
    """The balance of one app and lane, or of all together."""

    requests: Requests
    recipients: int
    """How many of the notifications came of bulk jobs."""
    notifications: Flow
    deliveries: Flow

    @property
    def differences(self) -> Mapping[Line, int]:
        """The lines that do not add up, with by how many."""
        each = {
            Line.REQUESTS: self.requests.difference,
            Line.NOTIFICATIONS: self.notifications.difference,
            Line.DELIVERIES: self.deliveries.difference,
        }
        return {line: n for line, n in each.items() if n}


Place = tuple[AppId, Lane]


class Sheet(Struct, frozen=True):
    """The balance of each app and lane, as one look found it."""

    at: Instant
    """The time up to which everything is in it: of a log, all that is recorded."""
    balances: Mapping[Place, Balance]


class Outline(Struct, frozen=True):
    """The notifications of an app, as a look says that costs the same however many are open."""

    ended: Mapping[str, int]
    """How many ended, by status, of all times."""
    open: int
    scheduled: int
    """How many of the open ones are to come; SCHEDULED_MOST stands for as many or more."""


SCHEDULED_MOST: Final = 10_000


class Seen(Struct, frozen=True):
    """The counters and the open rows that one look found in one app and lane."""

    counted: Mapping[str, int]
    notifications: Mapping[Waiting, int]
    deliveries: Mapping[Waiting, int]


def together(balances: Iterable[Balance]) -> Balance:
    """Sum up balances."""
    each = [*balances]
    requests = [one.requests for one in each]
    return Balance(
        Requests(
            sum(one.requests for one in requests),
            sum(one.refused for one in requests),
            sum(one.duplicates for one in requests),
            sum(one.accepted for one in requests),
        ),
        sum(one.recipients for one in each),
        _sum(one.notifications for one in each),
        _sum(one.deliveries for one in each),
    )


def _sum(flows: Iterable[Flow]) -> Flow:
    came, ended, still_open = 0, Counter[str](), Counter[Waiting]()
    for each in flows:
        came += each.came
        ended.update(each.ended)
        still_open.update(each.open)
    return Flow(came, ended, still_open)


def balance_of(seen: Seen) -> Balance:
    """Draw up the balance of what was seen."""
    counted = seen.counted
    notifications = {place: seen.notifications.get(place, 0) for place in _OPEN_NOTIFICATIONS}
    deliveries = {place: seen.deliveries.get(place, 0) for place in OPEN_DELIVERIES}
    accepted, recipients = counted.get(Count.ACCEPTED, 0), counted.get(Count.RECIPIENTS, 0)
    refused = counted.get(Count.REFUSED, 0) + counted.get(Count.CONFLICTING, 0)
    duplicates = counted.get(Count.REPEATED, 0) + counted.get(_DEDUPLICATED, 0)
    return Balance(
        Requests(counted.get(Count.REQUESTS, 0), refused, duplicates, accepted),
        recipients,
        Flow(accepted + recipients, dict(_ended(counted)), notifications),
        Flow(counted.get(Count.TARGETS, 0), dict(_ended_deliveries(counted)), deliveries),
    )


def outline_of(counted: Mapping[str, int], scheduled: int) -> Outline:
    """Draw the outline of what was counted of an app, in all of its lanes."""
    return Outline(dict(_ended(counted)), counted.get(_PENDING, 0), min(scheduled, SCHEDULED_MOST))


def _ended(counted: Mapping[str, int]) -> Iterator[tuple[str, int]]:
    """Yield the statuses in which notifications ended; a word of a newer version is one, too."""
    for word, n in counted.items():
        if n and word not in _OTHER_WORDS and not word.startswith((DELIVERY, DROPPED)):
            yield str(word), n


def _ended_deliveries(counted: Mapping[str, int]) -> Iterator[tuple[str, int]]:
    for word, n in counted.items():
        if n and word.startswith(DELIVERY):
            yield word.removeprefix(DELIVERY), n


class Difference(Struct, frozen=True):
    """A difference between the counters and what a recount found."""

    app: AppId
    lane: str
    line: Line
    status: str
    """The status, or ``accepted`` and ``targets`` for all together."""
    counted: int
    found: int
    hours: tuple[int, ...] = ()
    """The hours (since 1970) of which counters and rows differ, where counters are kept by the hour."""


def differences_of(
    app: AppId, lane: str, counted: Mapping[str, int], found: Mapping[Line, Mapping[str, int]]
) -> list[Difference]:
    """Compare the counters of one app and lane with the *found* rows of each status, what was dropped put aside."""
    expected = {
        Line.NOTIFICATIONS: dict(_ended(counted)) | {each: counted.get(each, 0) for each in (_PENDING, _DEDUPLICATED)},
        Line.DELIVERIES: dict(_ended_deliveries(counted)),
    }
    came = {
        Line.NOTIFICATIONS: counted.get(Count.ACCEPTED, 0)
        + counted.get(Count.RECIPIENTS, 0)
        + counted.get(_DEDUPLICATED, 0),
        Line.DELIVERIES: counted.get(Count.TARGETS, 0),
    }
    differences: list[Difference] = []
    for line, rows in ((line, found.get(line, {})) for line in expected):
        gone = {status: counted.get(f"{DROPPED}{_word(line, status)}", 0) for status in expected[line]}
        if line is Line.DELIVERIES:
            expected[line][_PENDING] = came[line] - sum(expected[line].values())
        for status in sorted({*expected[line], *rows}):
            kept = expected[line].get(status, 0) - gone.get(status, 0)
            if kept != rows.get(status, 0):
                differences.append(Difference(app, lane, line, status, kept, rows.get(status, 0)))
        all_kept = came[line] - sum(gone.values())
        if all_kept != sum(rows.values()):
            total = Count.TARGETS if line is Line.DELIVERIES else Count.ACCEPTED
            differences.append(Difference(app, lane, line, total, all_kept, sum(rows.values())))
    return differences


def _word(line: Line, status: str) -> str:
    return f"{DELIVERY}{status}" if line is Line.DELIVERIES else status
