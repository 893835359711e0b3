"""Every answer of FCM has one outcome."""

from __future__ import annotations

from email.utils import formatdate
from typing import Any

import msgspec
import pytest

from tests.unit.adapters.deliveries import ANDROID_TOKEN, NOW, answer, delivery
from waypost.adapters.fcm.errors import CODES, asks_for_a_new_access_token, outcome_of
from waypost.domain.device import Platform
from waypost.domain.outcome import Denied, Gone, Outcome, Refused, Taken, Throttled, Unanswered, Unreachable
from waypost.http2 import Answer, Result, Unknown, Unsent

FCM_ERROR = "type.googleapis.com/google.firebase.fcm.v1.FcmError"
BAD_REQUEST = "type.googleapis.com/google.rpc.BadRequest"

# status, top-level status, errorCode in the details, outcome
ROWS: list[tuple[int, str, str, type[Outcome]]] = [
    (404, "NOT_FOUND", "UNREGISTERED", Gone),
    (400, "INVALID_ARGUMENT", "INVALID_ARGUMENT", Refused),
    (403, "PERMISSION_DENIED", "SENDER_ID_MISMATCH", Refused),
    (401, "UNAUTHENTICATED", "THIRD_PARTY_AUTH_ERROR", Denied),
    (429, "RESOURCE_EXHAUSTED", "QUOTA_EXCEEDED", Throttled),
    (503, "UNAVAILABLE", "UNAVAILABLE", Unanswered),
    (500, "INTERNAL", "INTERNAL", Unanswered),
    (400, "UNKNOWN", "UNSPECIFIED_ERROR", Unanswered),
    (401, "UNAUTHENTICATED", "", Denied),
    (403, "PERMISSION_DENIED", "", Denied),
    (404, "NOT_FOUND", "", Refused),
    (429, "RESOURCE_EXHAUSTED", "", Throttled),
    (400, "INVALID_ARGUMENT", "", Refused),
    (503, "UNAVAILABLE", "", Unanswered),
    (500, "INTERNAL", "", Unanswered),
    (409, "ABORTED", "", Unanswered),
]
HTML_ROWS: list[tuple[int, type[Outcome]]] = [
    (400, Refused),
    (401, Denied),
    (403, Denied),
    (404, Refused),
    (413, Refused),
    (429, Throttled),
    (500, Unanswered),
    (502, Unanswered),
    (503, Unanswered),
    (504, Unanswered),
]


def error(status: int, canonical: str, *details: dict[str, Any], **headers: str) -> Answer:
    body = {"error": {"code": status, "message": "text", "status": canonical, "details": list(details)}}
    return answer(status, msgspec.json.encode(body), **headers)


def read(result: Result, throttles: int = 0) -> Outcome:
    return outcome_of(result, delivery(Platform.ANDROID, ANDROID_TOKEN, throttles=throttles), NOW)


@pytest.mark.parametrize(("status", "canonical", "code", "outcome"), ROWS)
def test_each_code_has_its_outcome_and_is_read_from_the_details_first(
    status: int, canonical: str, code: str, outcome: type[Outcome]
) -> None:
    details = [{"@type": FCM_ERROR, "errorCode": code}] if code else []
    got = read(error(status, canonical, *details))
    assert isinstance(got, outcome)
    assert not isinstance(got, Taken)
    assert got.code == (code or canonical)


@pytest.mark.parametrize(("status", "outcome"), HTML_ROWS)
def test_a_page_instead_of_json_is_read_by_its_status(status: int, outcome: type[Outcome]) -> None:
    got = read(answer(status, b"<!DOCTYPE html><title>Error</title>"))
    assert isinstance(got, outcome)
    assert not isinstance(got, Taken)
    assert got.code == f"http_{status}"


def test_the_rows_above_are_the_whole_table() -> None:
    rows = {code or canonical for _, canonical, code, _ in ROWS} | {f"http_{status}" for status, _ in HTML_ROWS}
    assert set(CODES) <= rows


def test_success_names_the_message() -> None:
    assert read(answer(200, b'{"name":"projects/p/messages/0:1"}')) == Taken("projects/p/messages/0:1")
    assert read(answer(200, b"")) == Taken("")


@pytest.mark.parametrize(
    ("field", "outcome"),
    [("message.token", Gone), ("message.android.ttl", Refused), ("message.data[0].value", Refused)],
)
def test_an_invalid_argument_forgets_the_token_only_where_the_token_is_named(
    field: str, outcome: type[Outcome]
) -> None:
    violation = {"@type": BAD_REQUEST, "fieldViolations": [{"field": field, "description": "x"}]}
    fcm = {"@type": FCM_ERROR, "errorCode": "INVALID_ARGUMENT"}
    assert isinstance(read(error(400, "INVALID_ARGUMENT", violation, fcm)), outcome)
    assert isinstance(read(error(400, "INVALID_ARGUMENT", violation)), outcome)


def test_a_quota_waits_as_told_or_at_least_a_minute_and_then_longer() -> None:
    assert read(error(429, "RESOURCE_EXHAUSTED", retry_after="5")) == Throttled("RESOURCE_EXHAUSTED", 5_000, whole=True)
    assert read(error(429, "RESOURCE_EXHAUSTED")) == Throttled("RESOURCE_EXHAUSTED", 60_000, whole=True)
    assert read(error(429, "RESOURCE_EXHAUSTED"), throttles=2) == Throttled("RESOURCE_EXHAUSTED", 240_000, whole=True)
    assert read(error(429, "RESOURCE_EXHAUSTED"), throttles=50) == Throttled("RESOURCE_EXHAUSTED", 3_600_000, whole=True)


def test_retry_after_may_be_a_date() -> None:
    got = read(error(503, "UNAVAILABLE", retry_after=formatdate(NOW / 1000 + 90, usegmt=True)))
    assert isinstance(got, Unanswered)
    assert got.wait_ms == 90_000


@pytest.mark.parametrize("hint", ["soon", "-1", "1.5", "9" * 40, ""])
def test_a_retry_after_that_is_no_time_is_no_hint(hint: str) -> None:
    got = read(error(503, "UNAVAILABLE", retry_after=hint))
    assert isinstance(got, Unanswered)
    assert got.wait_ms is None


def test_only_our_own_access_token_is_renewed() -> None:
    assert asks_for_a_new_access_token(error(401, "UNAUTHENTICATED"))
    assert asks_for_a_new_access_token(answer(401, b"<html>"))
    apns = {"@type": FCM_ERROR, "errorCode": "THIRD_PARTY_AUTH_ERROR"}
    assert not asks_for_a_new_access_token(error(401, "UNAUTHENTICATED", apns))
    assert not asks_for_a_new_access_token(error(403, "PERMISSION_DENIED"))
    assert not asks_for_a_new_access_token(Unsent("x"))


def test_not_written_is_unreachable_and_no_answer_is_unanswered() -> None:
    assert read(Unsent("queue full")) == Unreachable("not_sent", "queue full")
    assert read(Unknown("connection lost")) == Unanswered("connection_lost", "connection lost")


@pytest.mark.parametrize("body", [b'{"error":7}', b'{"error":{"details":"x"}}', b"[]", b"\xff", b'{"error":{}}'])
def test_json_of_another_shape_is_read_by_its_status(body: bytes) -> None:
    got = read(answer(503, body))
    assert isinstance(got, Unanswered)
    assert got.code == "http_503"
