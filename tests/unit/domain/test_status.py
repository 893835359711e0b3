"""The states: every pair of them, and a test for each row of the final status."""

from __future__ import annotations

from itertools import combinations_with_replacement, product

import pytest

from tests.shows import shows
from waypost.domain.status import (
    DELIVERY_TRANSITIONS,
    FINAL,
    NOTIFICATION_TRANSITIONS,
    REPLAYABLE,
    DeliveryStatus,
    NotificationStatus,
    final_status,
)

D = DeliveryStatus
N = NotificationStatus

DELIVERY_ALLOWED = {
    (D.PENDING, D.SENT),
    (D.PENDING, D.FAILED),
    (D.PENDING, D.EXPIRED),
    (D.PENDING, D.SUPPRESSED),
    (D.PENDING, D.CANCELLED),
    (D.PENDING, D.UNKNOWN),
    (D.SENT, D.DELIVERED),
    (D.SENT, D.OPENED),
    (D.SENT, D.FAILED),
    (D.DELIVERED, D.OPENED),
    (D.UNKNOWN, D.PENDING),
    (D.UNKNOWN, D.SENT),
    (D.UNKNOWN, D.DELIVERED),
    (D.UNKNOWN, D.OPENED),
    (D.UNKNOWN, D.FAILED),
    (D.UNKNOWN, D.EXPIRED),
    (D.UNKNOWN, D.CANCELLED),
}
NOTIFICATION_ALLOWED = {
    (N.SCHEDULED, N.PENDING),
    *product(
        (N.SCHEDULED, N.PENDING),
        (
            N.SENT,
            N.PARTIAL,
            N.DELIVERED,
            N.FAILED,
            N.EXPIRED,
            N.SUPPRESSED,
            N.CANCELLED,
            N.NO_TARGETS,
            N.UNKNOWN,
        ),
    ),
    (N.SENT, N.DELIVERED),
    (N.SENT, N.PARTIAL),
    (N.SENT, N.FAILED),
    (N.DELIVERED, N.PARTIAL),
    (N.PARTIAL, N.SENT),
    (N.PARTIAL, N.DELIVERED),
    (N.PARTIAL, N.FAILED),
    (N.PARTIAL, N.UNKNOWN),
    (N.UNKNOWN, N.SENT),
    (N.UNKNOWN, N.PARTIAL),
    (N.UNKNOWN, N.DELIVERED),
    (N.UNKNOWN, N.FAILED),
}
CONFIRMATIONS = [(D.SENT, D.DELIVERED), (D.SENT, D.OPENED), (D.DELIVERED, D.OPENED)]
CONFIRMATIONS += [(D.UNKNOWN, D.SENT), (D.UNKNOWN, D.DELIVERED), (D.UNKNOWN, D.OPENED)]
CONFIRMATIONS += [(D.SENT, D.FAILED), (D.UNKNOWN, D.FAILED)]


@shows("S4-02")
@pytest.mark.parametrize(("before", "after"), list(product(D, D)))
def test_every_pair_of_delivery_statuses(before: DeliveryStatus, after: DeliveryStatus) -> None:
    assert (after in DELIVERY_TRANSITIONS[before]) == ((before, after) in DELIVERY_ALLOWED)


@shows("S3-131")
@pytest.mark.parametrize(("before", "after"), list(product(N, N)))
def test_every_pair_of_notification_statuses(before: NotificationStatus, after: NotificationStatus) -> None:
    assert (after in NOTIFICATION_TRANSITIONS[before]) == ((before, after) in NOTIFICATION_ALLOWED)


@shows("S3-46", "S4-02")
def test_only_what_was_not_taken_can_be_replayed() -> None:
    assert {D.FAILED, D.EXPIRED, D.UNKNOWN} == REPLAYABLE


def test_final_is_all_but_what_still_moves_by_itself() -> None:
    assert set(N) - FINAL == {N.SCHEDULED, N.PENDING, N.PROCESSING}


@pytest.mark.parametrize(("before", "after"), CONFIRMATIONS)
def test_a_confirmation_moves_any_notification_within_its_table(before: DeliveryStatus, after: DeliveryStatus) -> None:
    """Whatever else its targets are, a confirmed delivery raises the notification or leaves it."""
    closed = [status for status in D if status is not D.PENDING]
    for others in (*((other,) for other in closed), *combinations_with_replacement(closed, 2), ()):
        first, second = final_status((before, *others)), final_status((after, *others))
        assert first is second or second in NOTIFICATION_TRANSITIONS[first], (first, second, others)


def test_no_target_is_no_targets() -> None:
    assert final_status([]) is N.NO_TARGETS


def test_all_suppressed_is_suppressed() -> None:
    assert final_status([D.SUPPRESSED, D.SUPPRESSED]) is N.SUPPRESSED


def test_all_cancelled_is_cancelled() -> None:
    assert final_status([D.CANCELLED, D.CANCELLED]) is N.CANCELLED


def test_cancelled_and_suppressed_mixed_is_cancelled() -> None:
    assert final_status([D.SUPPRESSED, D.CANCELLED]) is N.CANCELLED


@shows("S3-59")
def test_all_sent_is_sent() -> None:
    assert final_status([D.SENT, D.SENT]) is N.SENT


@pytest.mark.parametrize("confirmed", [D.DELIVERED, D.OPENED])
def test_all_sent_and_one_confirmed_is_delivered(confirmed: DeliveryStatus) -> None:
    assert final_status([D.SENT, confirmed]) is N.DELIVERED


@pytest.mark.parametrize("left_out", [D.SUPPRESSED, D.CANCELLED])
def test_suppressed_and_cancelled_are_left_out_of_the_rest(left_out: DeliveryStatus) -> None:
    assert final_status([D.SENT, left_out]) is N.SENT
    assert final_status([D.DELIVERED, left_out]) is N.DELIVERED
    assert final_status([D.FAILED, left_out]) is N.FAILED
    assert final_status([D.EXPIRED, left_out]) is N.EXPIRED
    assert final_status([D.UNKNOWN, left_out]) is N.UNKNOWN


@shows("S3-59")
@pytest.mark.parametrize("taken", [D.SENT, D.DELIVERED, D.OPENED])
@pytest.mark.parametrize("other", [D.FAILED, D.EXPIRED, D.UNKNOWN])
def test_some_sent_is_partial(taken: DeliveryStatus, other: DeliveryStatus) -> None:
    assert final_status([taken, other]) is N.PARTIAL


@pytest.mark.parametrize("other", [D.FAILED, D.EXPIRED, D.UNKNOWN])
def test_none_sent_but_one_unknown_is_unknown(other: DeliveryStatus) -> None:
    assert final_status([D.UNKNOWN, other]) is N.UNKNOWN


def test_all_expired_is_expired() -> None:
    assert final_status([D.EXPIRED, D.EXPIRED]) is N.EXPIRED


def test_anything_else_is_failed() -> None:
    assert final_status([D.FAILED]) is N.FAILED
    assert final_status([D.FAILED, D.EXPIRED]) is N.FAILED


def test_an_open_delivery_has_no_final_status() -> None:
    with pytest.raises(AssertionError, match="open delivery"):
        final_status([D.SENT, D.PENDING])


def test_the_order_of_targets_does_not_matter() -> None:
    for statuses in combinations_with_replacement([status for status in D if status is not D.PENDING], 3):
        assert final_status(statuses) is final_status(reversed(statuses))
