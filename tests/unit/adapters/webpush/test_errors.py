"""Every answer of a push service has one outcome."""

from __future__ import annotations

import pytest

from tests.unit.adapters.deliveries import NOW, answer
from waypost.adapters.webpush.errors import REASONS, STATUSES, outcome_of
from waypost.domain.outcome import Denied, Gone, Outcome, Refused, Taken, Throttled, Unanswered, Unreachable
from waypost.http2 import Unknown, Unsent

APPLE: list[tuple[int, str, type[Outcome]]] = [
    (400, "BadTtl", Refused),
    (400, "BadUrgency", Refused),
    (400, "BadWebPushRequest", Refused),
    (400, "BadWebPushTopic", Refused),
    (400, "VapidPkHashMismatch", Refused),
    (403, "VapidPkHashMismatch", Refused),
    (400, "IdleTimeout", Unanswered),
    (403, "BadAuthorizationHeader", Denied),
    (403, "BadJwtToken", Denied),
    (403, "BadVapidPublicKey", Denied),
    (404, "BadPath", Gone),
    (405, "MethodNotAllowed", Refused),
    (413, "PayloadTooLarge", Refused),
    (429, "TooManyRequests", Throttled),
    (500, "InternalServerError", Unanswered),
    (503, "ServiceUnavailable", Unanswered),
    (503, "Shutdown", Unanswered),
]
MOZILLA: list[tuple[int, int, type[Outcome]]] = [
    (400, 101, Refused),
    (404, 102, Gone),
    (410, 103, Gone),
    (413, 104, Refused),
    (410, 105, Gone),
    (410, 106, Gone),
    (400, 108, Refused),
    (401, 109, Denied),
    (400, 110, Refused),
    (400, 111, Refused),
    (400, 112, Refused),
    (400, 113, Refused),
    (400, 114, Refused),
    (503, 201, Unanswered),
    (503, 202, Unanswered),
    (502, 900, Unanswered),
    (502, 901, Unanswered),
    (502, 902, Unanswered),
    (502, 903, Unanswered),
]
PLAIN: list[tuple[int, type[Outcome]]] = [
    (400, Refused),
    (401, Denied),
    (403, Denied),
    (404, Gone),
    (405, Refused),
    (406, Throttled),
    (410, Gone),
    (413, Refused),
    (429, Throttled),
    (500, Unanswered),
    (502, Unanswered),
    (503, Unanswered),
    (504, Unanswered),
    (507, Unanswered),
    (301, Refused),
    (307, Refused),
    (418, Unanswered),
]


def check(got: Outcome, outcome: type[Outcome], code: str) -> None:
    assert isinstance(got, outcome)
    assert not isinstance(got, Taken)
    assert got.code == code


@pytest.mark.parametrize(("status", "reason", "outcome"), APPLE)
def test_each_reason_of_apple(status: int, reason: str, outcome: type[Outcome]) -> None:
    check(outcome_of(answer(status, b'{"reason":"%s"}' % reason.encode()), NOW), outcome, reason)


@pytest.mark.parametrize(("status", "errno", "outcome"), MOZILLA)
def test_each_errno_of_mozilla(status: int, errno: int, outcome: type[Outcome]) -> None:
    body = b'{"code":%d,"errno":%d,"error":"x","message":"y"}' % (status, errno)
    check(outcome_of(answer(status, body), NOW), outcome, f"errno_{errno}")


@pytest.mark.parametrize(("status", "outcome"), PLAIN)
def test_each_status_without_a_word(status: int, outcome: type[Outcome]) -> None:
    check(outcome_of(answer(status, b"text"), NOW), outcome, f"http_{status}")


def test_the_rows_above_are_the_whole_table() -> None:
    assert set(REASONS) == {reason for _, reason, _ in APPLE} | {f"errno_{errno}" for _, errno, _ in MOZILLA}
    assert set(STATUSES) <= {status for status, _ in PLAIN}


@pytest.mark.parametrize("status", [200, 201, 202])
def test_success_names_the_message_where_the_service_does(status: int) -> None:
    assert outcome_of(answer(status, location="/m/1"), NOW) == Taken("/m/1")
    assert outcome_of(answer(status, apns_id="EC1B"), NOW) == Taken("EC1B")
    assert outcome_of(answer(status), NOW) == Taken("")


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (403, b"the VAPID credentials in the authorization header do not correspond to the credentials used"),
        (401, b'{"code":401,"errno":109,"error":"Unauthorized","message":"VAPID public key mismatch"}'),
    ],
)
def test_a_subscription_of_another_key_is_refused_alone_and_does_not_stop_the_credential(
    status: int, body: bytes
) -> None:
    assert isinstance(outcome_of(answer(status, body), NOW), Refused)


def test_retry_after_is_honoured() -> None:
    assert outcome_of(answer(429, retry_after="9"), NOW) == Throttled("http_429", 9_000)
    got = outcome_of(answer(503, retry_after="120"), NOW)
    assert isinstance(got, Unanswered)
    assert got.wait_ms == 120_000


def test_not_written_is_unreachable_and_no_answer_is_unanswered() -> None:
    assert outcome_of(Unsent("queue full"), NOW) == Unreachable("not_sent", "queue full")
    assert outcome_of(Unknown("connection lost"), NOW) == Unanswered("connection_lost", "connection lost")
