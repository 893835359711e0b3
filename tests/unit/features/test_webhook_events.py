"""The events of webhooks: which changes are told, with which body, and under which id."""

from __future__ import annotations

import msgspec
import pytest
from msgspec.structs import replace

from tests.shows import shows
from tests.unit.adapters.deliveries import NID, NOW, TEXT_ID, notification
from waypost.channels.webhook.settings import CHANNEL, ToldStatus
from waypost.domain.channel import Channel
from waypost.domain.delivery import Receipt
from waypost.domain.ids import AppId, CallerId, DeviceId, NotificationId, UserId
from waypost.domain.moves import DeliveryMoved, Moved, NotificationMoved
from waypost.domain.notification import Lane
from waypost.domain.status import DeliveryStatus, NotificationStatus
from waypost.features.webhooks.events import event_of, is_own, is_told, notification_of
from waypost.ports.views import NotificationDetail, NotificationRecord

URL = "https://shop.example/hooks/secret"
ALL: frozenset[ToldStatus] = frozenset()
_D, _N = DeliveryStatus, NotificationStatus


def delivery_moved(after: DeliveryStatus, n: int = 1) -> DeliveryMoved:
    """A move of a target."""
    return DeliveryMoved(AppId("demo"), NID, UserId("u1"), n, DeviceId("d1"), 2, _D.PENDING, after, NOW, "http_500")


def notification_moved(after: NotificationStatus) -> NotificationMoved:
    """A move of the whole."""
    return NotificationMoved(AppId("demo"), NID, UserId("u1"), _N.PENDING, after, NOW)


def receipt(n: int, channel: str, status: DeliveryStatus) -> Receipt:
    """What became of one target."""
    return Receipt(NID, n, DeviceId(f"d{n}"), Channel(channel), status)


DETAIL = NotificationDetail(
    NotificationRecord(notification(), _N.DELIVERED),
    (receipt(0, "apns", _D.SENT), receipt(1, "sms", _D.DELIVERED), receipt(2, "fcm", _D.FAILED)),
)


@pytest.mark.parametrize("after", list(_D))
def test_deliveries_that_were_sent_confirmed_or_failed_are_told(after: DeliveryStatus) -> None:
    assert is_told(delivery_moved(after), ALL) == (after in {_D.SENT, _D.DELIVERED, _D.OPENED, _D.FAILED})


@pytest.mark.parametrize("after", list(_N))
def test_notifications_are_told_of_once_they_are_final(after: NotificationStatus) -> None:
    untold = {_N.SCHEDULED, _N.PENDING, _N.PROCESSING, _N.DEDUPLICATED}
    assert is_told(notification_moved(after), ALL) == (after not in untold)


def test_an_app_chooses_among_them() -> None:
    wanted = frozenset({ToldStatus.DELIVERED})
    assert is_told(delivery_moved(_D.DELIVERED), wanted)
    assert not is_told(delivery_moved(_D.SENT), wanted)
    assert not is_told(notification_moved(_N.FAILED), wanted)


@shows("S1-52", "S4-42")
def test_the_body_has_the_fields_that_were_asked_for_and_nothing_of_the_message() -> None:
    """Requirement S4-42, and ours beside."""
    event = event_of(delivery_moved(_D.DELIVERED), 7, DETAIL, URL)
    assert msgspec.json.decode(event.body) == {
        "type": "delivery.status",
        "timestamp": "2027-01-15T08:00:00.000Z",
        "occurred_at": "2027-01-15T08:00:00.000Z",
        "request_id": TEXT_ID,
        "notification_id": TEXT_ID,
        "client_id": "shop",
        "app": "demo",
        "kind": "visible",
        "status": "DELIVERED",
        "channel": "sms",
        "message": "the device confirmed it",
        "target": 1,
        "attempt": 2,
        "code": "http_500",
    }


def test_a_user_who_ordered_it_with_a_token_of_their_own_is_not_named() -> None:
    """What was told is kept by the notification that tells it, which is not erased with the user."""
    told = DETAIL.record.notification
    own = replace(told, caller=CallerId(f"login:{told.user_id}"))
    detail = replace(DETAIL, record=replace(DETAIL.record, notification=own))
    body = event_of(delivery_moved(_D.DELIVERED), 7, detail, URL).body
    assert msgspec.json.decode(body)["client_id"] == "login"


def test_a_whole_notification_names_the_channel_that_got_furthest() -> None:
    body = msgspec.json.decode(event_of(notification_moved(_N.DELIVERED), 7, DETAIL, URL).body)
    assert (body["type"], body["status"], body["channel"]) == ("notification.status", "DELIVERED", "sms")
    nobody = NotificationDetail(DETAIL.record)
    assert msgspec.json.decode(event_of(notification_moved(_N.NO_TARGETS), 7, nobody, URL).body)["channel"] is None


@shows("S4-50")
def test_a_change_has_one_id_whenever_it_is_read_and_no_two_have_the_same() -> None:
    moves: list[Moved] = [delivery_moved(after, n) for after in (_D.SENT, _D.DELIVERED) for n in (0, 1)]
    moves += [notification_moved(_N.SENT), notification_moved(_N.DELIVERED)]
    moves += [replace(notification_moved(_N.SENT), notification_id=NotificationId(bytes(16)))]
    first, again = ([event_of(move, 0, DETAIL, URL).id for move in moves] for _ in range(2))
    assert first == again
    assert len(set(first)) == len(moves)


def test_it_is_told_by_a_notification_that_is_told_of_to_nobody_and_hides_its_url() -> None:
    told = notification_of(event_of(notification_moved(_N.SENT), 7, DETAIL, URL))
    assert told.content.to is not None
    assert (told.content.to.channel, told.content.to.name, told.lane) == (CHANNEL, URL, Lane.LOW)
    assert (told.retry_policy, told.created_at) == ("s4_webhook", NOW)
    assert "shop.example" not in told.user_id
    assert is_own(replace(notification_moved(_N.SENT), user_id=told.user_id))
    assert not is_own(notification_moved(_N.SENT))
