"""Requirements S1-T3: what each gateway's error leads to, from its bytes to the settlement."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from tests.contract.clock import StoppedClock
from tests.shows import shows
from tests.unit.adapters.deliveries import ANDROID_TOKEN, IOS_TOKEN, NOW, answer, delivery, notification
from waypost.channels.apns.errors import outcome_of as apns_outcome
from waypost.channels.apns.sender import ApnsSender
from waypost.channels.apns.settings import ApnsSettings
from waypost.channels.fcm.errors import outcome_of as fcm_outcome
from waypost.channels.push.retry_after import PROBED_MS
from waypost.channels.unifiedpush.errors import outcome_of as unifiedpush_outcome
from waypost.channels.webpush.errors import outcome_of as webpush_outcome
from waypost.domain.credential import CredentialId
from waypost.domain.delivery import Delivery, FailureClass
from waypost.domain.device import Platform
from waypost.domain.ids import AppId
from waypost.domain.notification import Guarantee
from waypost.domain.outcome import Outcome, Unanswered
from waypost.domain.retry import EXPONENTIAL
from waypost.domain.settlement import Again, Dead, Forget, Unsure, decide
from waypost.domain.time import MINUTE_MS
from waypost.http2 import Unknown
from waypost.telemetry import Silent

FCM_ERROR = "type.googleapis.com/google.firebase.fcm.v1.FcmError"
DEAD = ("Unregistered", "ExpiredToken")
TO_IOS = delivery(Platform("ios"), IOS_TOKEN)
TO_ANDROID = delivery(Platform("android"), ANDROID_TOKEN)
TO_WEB = delivery(Platform("web"), "https://push.example/x")


def apns(reason: str, status: int, **headers: str) -> tuple[Outcome, Delivery]:
    """What APNs says in its body."""
    said = answer(status, msgspec.json.encode({"reason": reason}), **headers)
    return apns_outcome(said, TO_IOS, DEAD, NOW), TO_IOS


def fcm(code: str, status: int, **headers: str) -> tuple[Outcome, Delivery]:
    """What FCM says in the details."""
    body = {"error": {"status": "X", "details": [{"@type": FCM_ERROR, "errorCode": code}]}}
    return fcm_outcome(answer(status, msgspec.json.encode(body), **headers), TO_ANDROID, NOW), TO_ANDROID


def webpush(_: str, status: int, **headers: str) -> tuple[Outcome, Delivery]:
    """What a push service says by its status."""
    return webpush_outcome(answer(status, b"", **headers), NOW), TO_WEB


def unifiedpush(_: str, status: int, **headers: str) -> tuple[Outcome, Delivery]:
    """What a push server says by its status."""
    return unifiedpush_outcome(answer(status, b"", **headers), NOW), TO_WEB


GATEWAYS: dict[str, Callable[..., tuple[Outcome, Delivery]]] = {"apns": apns, "fcm": fcm, "webpush": webpush}

TERMINAL = [
    ("apns", "BadDeviceToken", 400),
    ("apns", "Unregistered", 410),
    ("apns", "MissingDeviceToken", 400),
    ("apns", "BadMessageId", 400),
    ("apns", "DuplicateHeaders", 400),
    ("fcm", "UNREGISTERED", 404),
    ("fcm", "INVALID_ARGUMENT", 400),
    ("fcm", "SENDER_ID_MISMATCH", 403),
    ("webpush", "", 404),
    ("webpush", "", 410),
]
RETRYABLE = [
    ("apns", "InternalServerError", 500),
    ("apns", "ServiceUnavailable", 503),
    ("apns", "Shutdown", 503),
    ("fcm", "INTERNAL", 500),
    ("fcm", "UNAVAILABLE", 503),
    ("fcm", "QUOTA_EXCEEDED", 429),
    ("webpush", "", 429),
    ("webpush", "", 500),
    ("webpush", "", 503),
    ("apns", "NeverHeardOf", 418),
    ("fcm", "NEVER_HEARD_OF", 418),
    ("webpush", "", 418),
]


@shows("S1-70", "S4-20")
@pytest.mark.parametrize(("gateway", "code", "status"), TERMINAL)
def test_a_terminal_error_is_never_retried(gateway: str, code: str, status: int) -> None:
    outcome, one = GATEWAYS[gateway](code, status)
    settlement = decide(outcome, one, EXPONENTIAL, NOW, 0.0)
    assert isinstance(settlement, Forget | Dead)
    assert settlement.code == (code or f"http_{status}")
    assert isinstance(settlement, Forget) or settlement.failure_class is FailureClass.TERMINAL


@shows("S1-70", "S1-71", "S1-76", "S4-19")
@pytest.mark.parametrize(("gateway", "code", "status"), RETRYABLE)
def test_a_retryable_or_unknown_error_is_retried(gateway: str, code: str, status: int) -> None:
    outcome, one = GATEWAYS[gateway](code, status)
    settlement = decide(outcome, one, EXPONENTIAL, NOW, 0.0)
    assert isinstance(settlement, Again)
    assert settlement.due_at > NOW


HINTED = [
    lambda: apns("ServiceUnavailable", 503, retry_after="1"),
    lambda: apns("InternalServerError", 500, retry_after="1"),
    lambda: fcm("UNAVAILABLE", 503, retry_after="1"),
    lambda: fcm("INTERNAL", 500, retry_after="1"),
    lambda: webpush("", 503, retry_after="1"),
    lambda: unifiedpush("", 503, retry_after="1"),
]


@pytest.mark.parametrize("say", HINTED)
def test_a_short_hint_given_each_time_does_not_use_up_the_retries_at_once(
    say: Callable[[], tuple[Outcome, Delivery]],
) -> None:
    """``Retry-After: 1`` on each of six tries: the waits in all are no shorter than without the hint."""
    outcome, one = say()
    waits = []
    for retries_made in range(EXPONENTIAL.max_retries):
        tried = msgspec.structs.replace(one, retries_made=retries_made)
        settlement = decide(outcome, tried, EXPONENTIAL, NOW, 0.0)
        assert isinstance(settlement, Again)
        waits.append(settlement.due_at - NOW)
    assert sum(waits) >= 31_000
    assert waits == sorted(waits)


@pytest.mark.parametrize("say", HINTED)
def test_a_hint_changes_nothing_but_the_wait(say: Callable[[], tuple[Outcome, Delivery]]) -> None:
    """Whether it may have been taken is what decides under at_most_once, with a hint or without."""
    outcome, one = say()
    once = msgspec.structs.replace(one, guarantee=Guarantee.AT_MOST_ONCE)
    settlement = decide(outcome, once, EXPONENTIAL, NOW, 0.0)
    assert isinstance(settlement, Unsure if isinstance(outcome, Unanswered) else Again)


@shows("S1-121")
def test_no_answer_from_apns_is_treated_as_its_internal_error() -> None:
    """Requirements S1-121: the same class, the same first wait of 5 s."""
    silent = apns_outcome(Unknown("no answer before the deadline"), TO_IOS, DEAD, NOW)
    failed, _ = apns("InternalServerError", 500)
    assert type(silent) is type(failed)
    for outcome in (silent, failed):
        settlement = decide(outcome, TO_IOS, EXPONENTIAL, NOW, 0.0)
        assert isinstance(settlement, Again)
        assert settlement.due_at - NOW == 5_000


def test_no_answer_from_apns_is_never_tried_again_where_at_most_once_was_asked_for() -> None:
    """Requirements S1-121: Apple may have it."""
    what = msgspec.structs.replace(notification(), guarantee=Guarantee.AT_MOST_ONCE)
    once = delivery(Platform("ios"), IOS_TOKEN, what)
    silent = apns_outcome(Unknown("no answer before the deadline"), once, DEAD, NOW)
    assert isinstance(decide(silent, once, EXPONENTIAL, NOW, 0.0), Unsure)


@shows("S1-121")
def test_apns_has_ten_seconds_to_answer() -> None:
    """Requirements S1-121: as the sender tells whoever plans around it."""
    settings = ApnsSettings(key_file="k", key_id="ABCDE12345", team_id="FGHIJ67890", topic="x")
    sender = ApnsSender(CredentialId.of(AppId("demo"), "apns"), settings, clock=StoppedClock(), telemetry=Silent())
    assert sender.capabilities.request_timeout_ms == 20_000


@pytest.mark.parametrize(
    ("said", "wait_ms"),
    [
        (fcm("QUOTA_EXCEEDED", 429, retry_after="3000"), PROBED_MS),
        (webpush("", 429, retry_after="3000"), PROBED_MS),
        (apns("TooManyProviderTokenUpdates", 429, retry_after="3000"), PROBED_MS),
        (apns("TooManyRequests", 429, retry_after="3000"), 50 * MINUTE_MS),
        (unifiedpush("", 429, retry_after="3000"), 50 * MINUTE_MS),
    ],
)
def test_a_pause_of_everything_is_capped_and_that_of_one_message_is_its_own(
    said: tuple[Outcome, Delivery], wait_ms: int
) -> None:
    outcome, one = said
    settlement = decide(outcome, one, EXPONENTIAL, NOW, 0.0)
    assert isinstance(settlement, Again)
    assert settlement.due_at == NOW + wait_ms
