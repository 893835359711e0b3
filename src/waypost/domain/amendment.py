"""Amendments: changes of a notification from outside, and the answers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum

from msgspec import Struct

from waypost.domain.ids import AppId, NotificationId, UserId, format_id
from waypost.domain.status import DeliveryStatus, NotificationStatus
from waypost.domain.time import Instant

CONFIRMING = frozenset({DeliveryStatus.SENT, DeliveryStatus.DELIVERED, DeliveryStatus.OPENED, DeliveryStatus.FAILED})
"""The statuses that a provider, a device or a user can report of what was handed over."""


class Withdraw(Struct, frozen=True, tag=True):
    """An order to take back the targets of a notification that are not leased yet."""

    app: AppId
    id: NotificationId
    why: str


class Confirm(Struct, frozen=True, tag=True):
    """A report that target number *target* was taken, delivered or opened, or that it came back (``failed``)."""

    app: AppId
    id: NotificationId
    target: int
    status: DeliveryStatus
    at: Instant
    code: str | None = None
    """The provider's code for why it came back."""
    why: str | None = None
    is_dead: bool = False
    """Whether it came back because nothing will reach its address again: the registry evicts that."""


class Collapse(Struct, frozen=True, tag=True):
    """The notifications of a user with one collapse key."""

    user_id: UserId
    key: str


class Supersede(Struct, frozen=True, tag=True):
    """An order to take back what is unsent of an older notification, or of a collapse key's: *by* replaces it."""

    app: AppId
    of: NotificationId | Collapse
    by: NotificationId

    def withdraws(self, notification_id: NotificationId) -> Withdraw:
        """Convert the order into the withdrawal of one notification."""
        return Withdraw(self.app, notification_id, f"superseded by {format_id(self.by)}")


class Remedy(StrEnum):
    """A remedy for a notification that nobody works on."""

    LOOK = "look"
    """Nothing: the answer tells whether anybody has it."""
    AGAIN = "again"
    """What is overdue, or would never be due, is due now."""
    SENT = "sent"
    """What is open was sent."""
    FAILED = "failed"
    """What is open has failed for good."""


class Recover(Struct, frozen=True, tag=True):
    """An order to help a notification of which no worker has anything; *why* is the reason that receipts show."""

    app: AppId
    id: NotificationId
    remedy: Remedy
    why: str


class Reschedule(Struct, frozen=True, tag=True):
    """An order to send a notification that waits for its time at another one, with its whole TTL from then on."""

    app: AppId
    id: NotificationId
    at: Instant


SingleAmendment = Withdraw | Confirm | Recover | Reschedule
"""The amendments of one notification."""
Amendment = SingleAmendment | Supersede


class Withdrawn(Struct, frozen=True, tag=True):
    """The answer that nothing more will be sent: *cancelled* targets were not handed over yet, *handed_over* were."""

    cancelled: int
    handed_over: int = 0


class TooLate(Struct, frozen=True, tag=True):
    """The answer that workers hold or settled *handed_over* targets; no attempt after the present one is made."""

    handed_over: int


class NotOpen(Struct, frozen=True, tag=True):
    """The answer that nothing could be withdrawn: unknown to this app (*status* None), or final already."""

    status: NotificationStatus | None


Withdrawal = Withdrawn | TooLate | NotOpen


class Recovered(Struct, frozen=True, tag=True):
    """The answer that nobody has it, and that the remedy was applied to this many *targets*."""

    targets: int = 0


Recovery = Recovered | TooLate | NotOpen


class Rescheduled(Struct, frozen=True, tag=True):
    """The answer that it is due *at* this time from now on."""

    at: Instant


Rescheduling = Rescheduled | TooLate | NotOpen


class Confirmed(Struct, frozen=True, tag=True):
    """The answer that the target stands at *status* from now on."""

    status: DeliveryStatus


class NotConfirmed(Struct, frozen=True, tag=True):
    """The answer that nothing changed: the target stands at *status*, from which it cannot go to what was reported.

    It stands there or beyond already, it ended otherwise, or its outcome is not known yet (``pending``, or an
    ``unknown`` that is still open: say it again later). None: this app has no such target, or not yet.
    """

    status: DeliveryStatus | None


Confirmation = Confirmed | NotConfirmed
Amended = Withdrawal | Confirmation | Recovered | Rescheduled


class LeasedTargets(Struct, frozen=True):
    """The targets of a notification that workers have leased while it is amended."""

    whole: bool = False
    targets: frozenset[int] = frozenset()


def unknown_to(amendment: SingleAmendment) -> Withdrawal | Confirmation:
    """Answer for a notification that the app does not have."""
    return NotConfirmed(None) if isinstance(amendment, Confirm) else NotOpen(None)


def together(answers: Sequence[Amended]) -> Amended:
    """Merge the answers for all notifications of a collapse key into one; return a single answer as it is."""
    if len(answers) == 1:
        return answers[0]
    counted = [each for each in answers if isinstance(each, TooLate | Withdrawn)]
    handed_over = sum(each.handed_over for each in counted)
    if any(isinstance(each, TooLate) for each in counted):
        return TooLate(handed_over)
    cancelled = sum(each.cancelled for each in counted if isinstance(each, Withdrawn))
    return Withdrawn(cancelled, handed_over) if counted else NotOpen(None)


def gathered(parts: Sequence[Sequence[SingleAmendment]], answers: Iterable[Amended]) -> list[Amended]:
    """Merge the answers of the expanded amendments into one for each of the *parts* that they came from."""
    each = iter(answers)
    return [together([next(each) for _ in part]) for part in parts]
