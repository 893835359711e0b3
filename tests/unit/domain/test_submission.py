"""What a submission becomes, and what is refused when it is validated."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from tests.shows import shows
from waypost.domain.channel import Channel
from waypost.domain.channel_steps import SubmittedChannels
from waypost.domain.content import ApnsPushType, Kind, Urgency
from waypost.domain.dedup import ClaimKind
from waypost.domain.drafting import Draft, draft
from waypost.domain.errors import ErrorCode, InvalidRequest
from waypost.domain.ids import AppId, CallerId, NotificationId
from waypost.domain.notification import Lane
from waypost.domain.submission import (
    ContentSubmission,
    Defaults,
    NotificationType,
    Submission,
    SubmittedBroadcast,
    TypedDefaults,
)
from waypost.domain.time import DAY_MS, HOUR_MS, MINUTE_MS, Instant, later

NOW = Instant(1_800_000_000_000)
OTP, PROMOTION = NotificationType("otp"), NotificationType("promotion")
ONCE = Defaults(dedup_window_s=60)
IN_AN_HOUR = datetime.fromtimestamp((NOW + HOUR_MS) / 1000, UTC)


def drafted(defaults: Defaults = Defaults(), /, made_by: type[Submission] = Submission, **fields: Any) -> Draft:  # noqa: B008 - frozen
    """The draft of a submission that shows a title, unless *fields* say otherwise."""
    submission = made_by(**({"user_id": "ann", "title": "Hello"} | fields))
    return draft(submission, NotificationId(b"n" * 16), AppId("demo"), CallerId("shop"), defaults, NOW)


def faults(**fields: Any) -> list[str]:
    """The paths of what is wrong."""
    with pytest.raises(InvalidRequest) as caught:
        drafted(**fields)
    return [fault.path for fault in caught.value.faults]


def windows(made: Draft) -> dict[ClaimKind, int]:
    """How long each claimed key holds, milliseconds."""
    return {claim.kind: claim.until - NOW for claim in made.claims}


@shows("S1-51")
@pytest.mark.parametrize("shown", ["title", "subtitle", "body", "image", "icon", "link", "sound"])
def test_a_silent_notification_may_show_nothing(shown: str) -> None:
    """Requirements S1-51: at validation, not when it is sent."""
    assert faults(kind=Kind.SILENT, **({"title": None} | {shown: "x"})) == [shown]


@shows("S1-51")
def test_a_visible_notification_needs_a_title_or_a_body() -> None:
    assert faults(title=None) == ["title"]
    assert drafted(title=None, body="Hello").notification.kind is Kind.VISIBLE


@shows("S1-48")
def test_urgency_is_normal_unless_said() -> None:
    assert drafted().notification.urgency is Urgency.NORMAL


@shows("S1-52", "S1-135", "S2-19")
@pytest.mark.parametrize("urgency", list(Urgency))
def test_the_lane_is_the_urgency_or_silent(urgency: Urgency) -> None:
    assert drafted(urgency=urgency).notification.lane is Lane(urgency.value)
    assert drafted(urgency=urgency, kind=Kind.SILENT, title=None).notification.lane is Lane.SILENT


@shows("S1-93")
def test_it_is_worth_sending_for_a_day_unless_said() -> None:
    """Requirements S1-93: 86,400 s."""
    made = drafted().notification
    assert (made.ttl_ms, made.expires_at) == (DAY_MS, later(NOW, DAY_MS))
    assert drafted(ttl=60).notification.expires_at == later(NOW, MINUTE_MS)
    assert drafted(Defaults(ttl_s=3_600)).notification.expires_at == later(NOW, HOUR_MS)


def test_the_time_of_a_scheduled_one_begins_when_it_is_due() -> None:
    made = drafted(scheduled_at=IN_AN_HOUR, ttl=60).notification
    assert (made.scheduled_at, made.expires_at) == (NOW + HOUR_MS, NOW + HOUR_MS + MINUTE_MS)


def test_what_is_due_in_more_than_a_year_is_refused() -> None:
    assert faults(scheduled_at=datetime(2099, 1, 1, tzinfo=UTC)) == ["scheduled_at"]


def test_what_is_said_again_is_sent_again_unless_a_window_was_asked_for() -> None:
    """By the app or by the caller: "take your pill" at nine and at ten are two."""
    assert windows(drafted()) == {}
    assert windows(drafted(Defaults(dedup_window_s=86_400))) == {ClaimKind.CONTENT: DAY_MS}
    assert windows(drafted(dedup_window=300)) == {ClaimKind.CONTENT: 5 * MINUTE_MS}
    assert windows(drafted(Defaults(dedup_window_s=300))) == {ClaimKind.CONTENT: 5 * MINUTE_MS}
    assert windows(drafted(Defaults(dedup_window_s=300), dedup_window=0)) == {}


@shows("S1-06", "S1-07")
def test_the_notify_api_sends_the_same_content_once_in_a_day_unless_the_app_says_otherwise() -> None:
    """Requirements S1-06 and S1-07: 24 hours, 5 minutes for what comes often, or off."""

    def notified(**fields: Any) -> Draft:
        return drafted(made_by=ContentSubmission, **fields)

    assert windows(notified()) == {ClaimKind.CONTENT: DAY_MS}
    assert windows(drafted(Defaults(dedup_window_s=300), made_by=ContentSubmission)) == {
        ClaimKind.CONTENT: 5 * MINUTE_MS
    }
    assert windows(drafted(Defaults(dedup_window_s=0), made_by=ContentSubmission)) == {}
    assert notified().claims[0].key == notified(urgency=Urgency.HIGH, ttl=60).claims[0].key
    assert notified().claims[0].key != notified(data={"order": "2"}).claims[0].key


@pytest.mark.parametrize(
    "other",
    [
        {"user_id": "bob"},
        {"data": {"chat": "2"}},
        {"link": "https://chat.example/2"},
        {"device_ids": ("phone",)},
        {"scheduled_at": IN_AN_HOUR},
        {"urgency": Urgency.HIGH},
        {"overrides": {"apns": {"aps": {"badge": 2}}}},
    ],
)
def test_what_differs_in_any_field_is_another_submission(other: dict[str, Any]) -> None:
    def key(**fields: Any) -> bytes:
        (claim,) = drafted(dedup_window=60, **fields).claims
        return claim.key

    assert key() == key()
    assert key(**other) != key()


@shows("S1-137")
@pytest.mark.parametrize(
    ("kind", "defaults", "window_ms"),
    [
        ("otp", Defaults(), None),
        ("otp", Defaults(dedup_window_s=86_400), 5 * MINUTE_MS),
        ("payment", Defaults(dedup_window_s=86_400), 5 * MINUTE_MS),
        ("promotion", Defaults(dedup_window_s=86_400), DAY_MS),
        ("OTP", Defaults(dedup_window_s=86_400), DAY_MS),
        ("otp", Defaults(dedup_window_s=60), MINUTE_MS),
        ("otp", Defaults(dedup_window_s=0), None),
        ("otp", Defaults(dedup_windows_s={OTP: 3_600}), HOUR_MS),
        ("payment", Defaults(dedup_window_s=86_400, dedup_windows_s={OTP: 3_600}), 5 * MINUTE_MS),
        ("promotion", Defaults(dedup_windows_s={PROMOTION: 3_600}), HOUR_MS),
        ("promotion", Defaults(dedup_windows_s={PROMOTION: 0}), None),
        ("promotion", Defaults(ttl_s=60, dedup_windows_s={PROMOTION: 3_600}), MINUTE_MS),
        (None, Defaults(dedup_windows_s={PROMOTION: 3_600}), None),
        (None, Defaults(dedup_window_s=86_400, dedup_windows_s={PROMOTION: 3_600}), DAY_MS),
    ],
)
def test_each_type_has_a_content_window(kind: str | None, defaults: Defaults, window_ms: int | None) -> None:
    """Requirements S1-137: 5 minutes for a code or a payment, a day for the rest, or what the app says of a type."""
    said = {} if window_ms is None else {ClaimKind.CONTENT: window_ms}
    assert windows(drafted(defaults, type=kind)) == said
    assert windows(drafted(defaults, type=kind, dedup_window=30)) == {ClaimKind.CONTENT: 30_000}, "the caller's word"
    assert windows(drafted(defaults, type=kind, idempotency_key="k")) == {ClaimKind.IDEMPOTENCY: DAY_MS} | said


@shows("S1-138")
def test_the_content_window_is_never_longer_than_the_validity() -> None:
    """Requirements S1-138."""
    assert windows(drafted(dedup_window=86_400, ttl=60)) == {ClaimKind.CONTENT: MINUTE_MS}
    assert windows(drafted(ttl=0)) == {}
    due_later = drafted(scheduled_at=IN_AN_HOUR, ttl=60, dedup_window=86_400)
    assert windows(due_later) == {ClaimKind.CONTENT: HOUR_MS + MINUTE_MS}


@shows("S1-138")
def test_a_type_has_a_validity_of_its_own_and_a_window_that_is_no_longer() -> None:
    defaults = TypedDefaults(
        dedup_window_s=86_400, ttls_s={NotificationType("otp"): 120, NotificationType("news"): 600}
    )
    otp, other = drafted(defaults, type="otp"), drafted(defaults, type="other")
    assert (otp.notification.ttl_ms, other.notification.ttl_ms) == (2 * MINUTE_MS, DAY_MS)
    assert (windows(otp), windows(other)) == ({ClaimKind.CONTENT: 2 * MINUTE_MS}, {ClaimKind.CONTENT: DAY_MS})
    assert drafted(defaults, type="otp", ttl=30).notification.ttl_ms == MINUTE_MS // 2
    due_later = drafted(defaults, type="news", scheduled_at=IN_AN_HOUR)
    assert windows(due_later) == {ClaimKind.CONTENT: HOUR_MS + 10 * MINUTE_MS}
    steps = [{"to": "push", "for": "10m"}, "email"]
    with pytest.raises(InvalidRequest, match="too late"):
        drafted(defaults, type="news", channels=msgspec.convert(steps, SubmittedChannels))


@shows("S2-17")
def test_a_callers_own_key_is_kept_for_a_day() -> None:
    assert windows(drafted(idempotency_key="k", ttl=60)) == {ClaimKind.IDEMPOTENCY: DAY_MS}
    assert windows(drafted(idempotency_key="k", made_by=ContentSubmission)) == {ClaimKind.IDEMPOTENCY: DAY_MS}
    both = drafted(idempotency_key="k", dedup_window=300)
    assert windows(both) == {ClaimKind.IDEMPOTENCY: DAY_MS, ClaimKind.CONTENT: 5 * MINUTE_MS}


def test_at_most_64_kib_as_stored() -> None:
    with pytest.raises(InvalidRequest, match="at most 65536") as caught:
        drafted(body="x" * 65_536)
    assert caught.value.code is ErrorCode.TOO_LARGE
    assert drafted(body="x" * 65_000).notification.content.body


@pytest.mark.parametrize("push_type", list(ApnsPushType))
def test_a_push_type_contradicts_the_other_kind(push_type: ApnsPushType) -> None:
    other = Kind.SILENT if push_type.kind is Kind.VISIBLE else Kind.VISIBLE
    title = "Hello" if other is Kind.VISIBLE else None
    assert "push_type" in faults(push_type=push_type, kind=other, title=title)


@pytest.mark.parametrize("push_type", [each for each in ApnsPushType if each is not ApnsPushType.ALERT])
def test_a_push_that_is_no_alert_needs_no_title(push_type: ApnsPushType) -> None:
    made = drafted(push_type=push_type, kind=push_type.kind, title=None)
    assert made.notification.content.push_type is push_type


def test_what_a_push_type_cannot_show_is_refused() -> None:
    assert faults(push_type=ApnsPushType.VOIP) == ["title"]
    assert faults(push_type=ApnsPushType.LIVEACTIVITY, image="https://img.example/1", badge=1) == ["image", "badge"]


def test_two_updates_of_a_live_activity_are_not_the_same_content() -> None:
    def key(eta: int) -> bytes:
        aps = {"event": "update", "content-state": {"eta": eta}}
        made = drafted(
            dedup_window=60, push_type=ApnsPushType.LIVEACTIVITY, title=None, overrides={Channel("apns"): {"aps": aps}}
        )
        (claim,) = made.claims
        return claim.key

    assert key(5) != key(4)
    assert key(5) == key(5)


NEWS = SubmittedBroadcast("fcm", "topic", "news")


def test_all_who_listen_stand_where_a_user_would() -> None:
    """A user who happens to have that name is told nothing twice for it, and nothing less."""
    to_all, to_user = drafted(ONCE, user_id=None, to=NEWS), drafted(ONCE, user_id="fcm:topic:news")
    assert to_all.notification.user_id == to_user.notification.user_id == "fcm:topic:news"
    assert [claim.key for claim in to_all.claims] != [claim.key for claim in to_user.claims]
    long = drafted(user_id=None, to=SubmittedBroadcast("fcm", "condition", "'a' in topics || " * 20)).notification
    assert len(long.user_id) <= 128


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"user_id": None}, ["user_id"]),
        ({"to": NEWS}, ["to"]),
        ({"user_id": None, "to": NEWS, "device_ids": ("d",)}, ["device_ids"]),
    ],
)
def test_a_submission_names_either_a_user_or_all_who_listen(fields: dict[str, Any], named: list[str]) -> None:
    assert faults(**fields) == named
