"""A delivery: one notification to one target, and its record, the receipt."""

from __future__ import annotations

from typing import Final, Protocol

from msgspec import Struct

from waypost.domain.address import UNROUTED, Address
from waypost.domain.channel import Channel
from waypost.domain.credential import CredentialId
from waypost.domain.device import Device
from waypost.domain.ids import DeviceId, NotificationId
from waypost.domain.message import Message, rendered_for
from waypost.domain.notification import Guarantee, Notification
from waypost.domain.status import DeliveryStatus
from waypost.domain.time import Instant, later
from waypost.domain.waits import Wait
from waypost.domain.words import Words

PUT_OFF: Final = "rule:"
"""The beginning of the conditions under which a rule puts off: none of a provider's."""
NOW_OR_NEVER_MS = 30_000
"""Milliseconds that the one attempt of a TTL of 0 may start late; after that "now" is over."""


class Target(Struct, frozen=True):
    """The address of a delivery: the *n*-th target of its notification, numbered when first routed."""

    n: int
    device_id: DeviceId
    channel: Channel | None
    """The channel; None where none reaches it; then *suppressed* says why."""
    suppressed: str | None = None
    waits: Wait | None = None
    """What it waits for before its first attempt: until then nobody leases it, and the settle that stores it says
    nothing else of it."""


class OpenTarget(Struct, frozen=True):
    """A stored target whose delivery is still open, as a work item names it."""

    n: int
    device_id: DeviceId
    channel: Channel
    attempt: int
    """Attempts recorded so far; the next is one more."""
    retries: int = 0
    """Retries spent; throttled and parked rounds spend none."""
    throttles: int = 0
    """Rounds that the provider put off."""


class Delivery(Struct, frozen=True):
    """One attempt about to be made: its target, its message, and what was agreed for its notification."""

    id: NotificationId
    """The notification's id, by which an app recognizes it."""
    n: int
    credential: CredentialId
    address: Address
    message: Message
    attempt: int
    """The number of this attempt, from 1; it only grows."""
    retries_made: int = 0
    throttles: int = 0
    guarantee: Guarantee = Guarantee.AT_LEAST_ONCE
    retry_policy: str | None = None

    @property
    def channel(self) -> Channel:
        """The channel that sends it."""
        return self.credential.channel

    @property
    def device(self) -> Device:
        """The device that it goes to, for senders who reach nothing else."""
        assert isinstance(self.address, Device), "their plug-ins name no listeners"
        return self.address


class FailureClass(Words):
    """A class of failures: whether a retry could have helped."""

    RETRYABLE = "retryable"
    TERMINAL = "terminal"


class Attempt(Struct, frozen=True, array_like=True):
    """One attempt in the receipt's compact history; the token appears as a hash only."""

    at: Instant
    status: str
    """``taken``, ``gone``, ``refused``, ``denied``, ``throttled``, ``unreachable`` or ``unanswered``."""
    code: str
    message: str
    token_hash: bytes
    credential: str = ""
    """The name of the channel's credential that it was made with; "" is the default one."""


class Receipt(Struct, frozen=True):
    """The record of a delivery; its key is (notification id, n)."""

    notification_id: NotificationId
    n: int
    device_id: DeviceId
    channel: Channel | None
    status: DeliveryStatus
    attempt: int = 0
    retries: int = 0
    throttles: int = 0
    due_at: Instant | None = None
    """The time when it is next touched: its retry, the expiry of a parked one, or the deadline of an intent."""
    parked: str | None = None
    """The condition it waits for, such as ``breaker:demo/apns``."""
    provider_id: str | None = None
    code: str | None = None
    """The provider's error code of the last attempt."""
    failure_class: FailureClass | None = None
    reason: str | None = None
    dead: bool = False
    """Left as a dead letter: listed, inspected and replayed by an operator."""
    first_attempt_at: Instant | None = None
    last_attempt_at: Instant | None = None
    sent_at: Instant | None = None
    resolved_at: Instant | None = None
    attempts: tuple[Attempt, ...] = ()
    waits: Wait | None = None
    """What it waited for before its first attempt; while it waits for an unsettled sibling, it is due at no time."""
    is_newer: bool = False
    """Whether a newer version wrote what this one cannot read: it reads ``unknown``, and nothing changes it here."""

    @property
    def is_intent(self) -> bool:
        """Whether this is an at_most_once attempt that may be on the wire: counts as open, reads ``processing``."""
        return self.status is DeliveryStatus.UNKNOWN and self.due_at is not None and not self.is_newer

    @property
    def is_open(self) -> bool:
        """Whether it is still to be settled, maybe by a newer version alone."""
        if self.is_newer:
            return self.resolved_at is None
        return self.status is DeliveryStatus.PENDING or self.is_intent

    @property
    def is_untouched(self) -> bool:
        """Whether nothing was written of it since it was stored, but that a rule put it off: its turn has not come."""
        tried = self.attempt or self.retries or self.throttles
        is_put_off = self.parked is None or self.parked.startswith(PUT_OFF)
        return self.status is DeliveryStatus.PENDING and not tried and is_put_off

    @property
    def stands_for_all(self) -> bool:
        """Whether this is the record of work that ended before it was routed (poison): a replay routes it anew."""
        return self.device_id == UNROUTED


def delivery_of(
    notification: Notification,
    n: int,
    credential: CredentialId,
    address: Address,
    message: Message,
    attempt: int = 1,
    retries_made: int = 0,
    throttles: int = 0,
) -> Delivery:
    """Make attempt number *attempt* to send *message* to the *n*-th target of *notification*."""
    return Delivery(
        notification.id,
        n,
        credential,
        address,
        rendered_for(message, credential.channel),
        attempt,
        retries_made,
        throttles,
        notification.guarantee,
        notification.retry_policy,
    )


class Lasting(Protocol):
    """Anything that is worth sending for a limited time."""

    @property
    def expires_at(self) -> Instant:
        """The end of the time in which it is worth sending."""
        ...

    @property
    def ttl_ms(self) -> int:
        """The whole time in which it is worth sending, milliseconds; 0 is one attempt now."""
        ...


def starts_before(lasting: Lasting, attempt: int) -> Instant:
    """Return when it is too late for attempt number *attempt* to start; a TTL of 0 allows exactly one, at once."""
    is_now_or_never = lasting.ttl_ms == 0 and attempt == 1
    return later(lasting.expires_at, NOW_OR_NEVER_MS if is_now_or_never else 0)


def is_expired(lasting: Lasting, attempt: int, now: Instant) -> bool:
    """Tell whether attempt number *attempt* may no longer start."""
    return now >= starts_before(lasting, attempt)
