"""The states of a delivery and of a notification, and how they may change."""

from __future__ import annotations

from collections.abc import Iterable

from waypost.domain.words import Words


class DeliveryStatus(Words):
    """The status of one delivery."""

    PENDING = "pending"  # to be sent, waiting for a retry, or parked
    SENT = "sent"  # the provider took it
    DELIVERED = "delivered"  # the device confirmed it
    OPENED = "opened"  # the user opened it
    FAILED = "failed"  # refused, or out of retries
    EXPIRED = "expired"  # its time was over before it could be sent
    SUPPRESSED = "suppressed"  # decided not to send
    CANCELLED = "cancelled"  # withdrawn by the caller before it was sent
    UNKNOWN = "unknown"  # at_most_once alone: the provider may or may not have it


class NotificationStatus(Words):
    """The status of a notification, derived from its deliveries."""

    SCHEDULED = "scheduled"  # waits for its time
    PENDING = "pending"  # accepted, not yet routed
    PROCESSING = "processing"  # derived when read, never written: leased, or routed with a target open
    SENT = "sent"  # every target taken by its provider
    PARTIAL = "partial"  # some targets taken
    DELIVERED = "delivered"  # all sent, at least one confirmed
    FAILED = "failed"  # no target taken
    EXPIRED = "expired"  # its time was over first
    SUPPRESSED = "suppressed"  # decided not to send to any target
    CANCELLED = "cancelled"  # withdrawn
    NO_TARGETS = "no_targets"  # the user has no device
    DEDUPLICATED = "deduplicated"  # the same content was accepted before
    UNKNOWN = "unknown"  # no target known as taken, at least one may have been


_D = DeliveryStatus

DELIVERY_TRANSITIONS: dict[DeliveryStatus, frozenset[DeliveryStatus]] = {
    _D.PENDING: frozenset({_D.SENT, _D.FAILED, _D.EXPIRED, _D.SUPPRESSED, _D.CANCELLED, _D.UNKNOWN}),
    _D.SENT: frozenset({_D.DELIVERED, _D.OPENED, _D.FAILED}),  # failed: what was taken came back
    _D.DELIVERED: frozenset({_D.OPENED}),
    _D.UNKNOWN: frozenset({_D.PENDING, _D.SENT, _D.DELIVERED, _D.OPENED, _D.FAILED, _D.EXPIRED, _D.CANCELLED}),
    _D.OPENED: frozenset(),
    _D.FAILED: frozenset(),
    _D.EXPIRED: frozenset(),
    _D.SUPPRESSED: frozenset(),
    _D.CANCELLED: frozenset(),
}
"""What one settle or confirmation may do. ``unknown`` with a deadline is an intent: the first outcome replaces it."""

REPLAYABLE: frozenset[DeliveryStatus] = frozenset({_D.FAILED, _D.EXPIRED, _D.UNKNOWN})
"""The statuses that a replay takes back to ``pending``: the only way out of a final state."""

_N = NotificationStatus

FINAL: frozenset[NotificationStatus] = frozenset(_N) - {_N.SCHEDULED, _N.PENDING, _N.PROCESSING}

NOTIFICATION_TRANSITIONS: dict[NotificationStatus, frozenset[NotificationStatus]] = {
    _N.SCHEDULED: frozenset(FINAL - {_N.DEDUPLICATED}) | {_N.PENDING},
    _N.PENDING: frozenset(FINAL - {_N.DEDUPLICATED}),
    _N.PROCESSING: frozenset(),
    _N.SENT: frozenset({_N.DELIVERED, _N.PARTIAL, _N.FAILED}),  # what was taken came back
    _N.PARTIAL: frozenset({_N.SENT, _N.DELIVERED, _N.FAILED, _N.UNKNOWN}),  # unknown targets were taken, or came back
    _N.DELIVERED: frozenset({_N.PARTIAL}),  # one of several came back
    _N.UNKNOWN: frozenset({_N.SENT, _N.PARTIAL, _N.DELIVERED, _N.FAILED}),
} | {status: frozenset() for status in FINAL - {_N.SENT, _N.PARTIAL, _N.DELIVERED, _N.UNKNOWN}}
"""Stored changes. ``processing`` is never stored; a replay (pipeline/replay) reopens a final state as ``pending``."""

_TAKEN = frozenset({_D.SENT, _D.DELIVERED, _D.OPENED})
CONFIRMED: frozenset[DeliveryStatus] = frozenset({_D.DELIVERED, _D.OPENED})
"""The statuses that a device or a provider confirmed."""


def final_status(deliveries: Iterable[DeliveryStatus]) -> NotificationStatus:
    """Derive a routed notification's final status from all its deliveries, none of which is open (design section 2)."""
    statuses = set(deliveries)
    assert _D.PENDING not in statuses, "a notification with an open delivery has no final status"
    if not statuses:
        return _N.NO_TARGETS
    if statuses <= _TAKEN:
        return _N.SENT if statuses.isdisjoint(CONFIRMED) else _N.DELIVERED
    if statuses == {_D.SUPPRESSED}:
        return _N.SUPPRESSED
    counted = statuses - {_D.SUPPRESSED, _D.CANCELLED}
    if not counted:
        return _N.CANCELLED
    if counted <= _TAKEN:
        return _N.DELIVERED if counted & CONFIRMED else _N.SENT
    if counted & _TAKEN:
        return _N.PARTIAL
    if _D.UNKNOWN in counted:
        return _N.UNKNOWN
    return _N.EXPIRED if counted == {_D.EXPIRED} else _N.FAILED
