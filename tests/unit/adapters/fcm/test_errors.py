"""Every answer of FCM has one outcome."""

from __future__ import annotations

import re
from email.utils import formatdate
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.shows import shows
from tests.tables import AddRow
from tests.unit.adapters.deliveries import ANDROID_TOKEN, NOW, answer, delivery, fresh_ids, notification
from tests.unit.adapters.error_rows import add_error_row, rest_after, rows_of_page
from tests.unit.adapters.push.test_watch import Told
from waypost.channels.fcm.errors import CODES, asks_for_a_new_access_token, outcome_of
from waypost.channels.fcm.settings import TokenRules
from waypost.channels.push.answers import Meaning
from waypost.channels.push.watch import CredentialWatch
from waypost.domain.delivery import Attempt, FailureClass, Receipt
from waypost.domain.device import Platform
from waypost.domain.outcome import (
    CredentialRejected,
    Gone,
    Outcome,
    Reach,
    Refused,
    Taken,
    Throttled,
    Unanswered,
    Unreachable,
)
from waypost.domain.retry import EXPONENTIAL
from waypost.domain.settlement import Change, apply, decide
from waypost.domain.status import DeliveryStatus
from waypost.domain.time import DAY_MS
from waypost.http2 import Answer, Result, Unknown, Unsent
from waypost.telemetry.events import Event

FCM_ERROR = "type.googleapis.com/google.firebase.fcm.v1.FcmError"
BAD_REQUEST = "type.googleapis.com/google.rpc.BadRequest"

# status, top-level status, errorCode in the details, outcome
ROWS: list[tuple[int, str, str, type[Outcome]]] = [
    (404, "NOT_FOUND", "UNREGISTERED", Gone),
    (400, "INVALID_ARGUMENT", "INVALID_ARGUMENT", Refused),
    (403, "PERMISSION_DENIED", "SENDER_ID_MISMATCH", Refused),
    (401, "UNAUTHENTICATED", "THIRD_PARTY_AUTH_ERROR", Refused),
    (429, "RESOURCE_EXHAUSTED", "QUOTA_EXCEEDED", Throttled),
    (503, "UNAVAILABLE", "UNAVAILABLE", Unanswered),
    (500, "INTERNAL", "INTERNAL", Unanswered),
    (400, "UNKNOWN", "UNSPECIFIED_ERROR", Unanswered),
    (401, "UNAUTHENTICATED", "", CredentialRejected),
    (403, "PERMISSION_DENIED", "", CredentialRejected),
    (404, "NOT_FOUND", "", Refused),
    (429, "RESOURCE_EXHAUSTED", "", Throttled),
    (400, "INVALID_ARGUMENT", "", Refused),
    (503, "UNAVAILABLE", "", Unanswered),
    (500, "INTERNAL", "", Unanswered),
    (404, "UNREGISTERED", "", Gone),
    (409, "ABORTED", "", Unanswered),
]
HTML_ROWS: list[tuple[int, type[Outcome]]] = [
    (400, Refused),
    (401, CredentialRejected),
    (403, CredentialRejected),
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


def read(result: Result, rules: TokenRules | None = None, **spent: Any) -> Outcome:
    return outcome_of(result, delivery(Platform("android"), ANDROID_TOKEN, **spent), NOW, rules or TokenRules())


def says(code: str, status: int, text: str = "text", field: str = "") -> Answer:
    details: list[dict[str, Any]] = [{"@type": FCM_ERROR, "errorCode": code}]
    if field:
        details.append({"@type": BAD_REQUEST, "fieldViolations": [{"field": field}]})
    body = {"error": {"code": status, "message": text, "status": "X", "details": details}}
    return answer(status, msgspec.json.encode(body))


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


@shows("S1-75")
def test_a_quota_waits_as_told_or_at_least_a_minute_and_then_longer() -> None:
    assert read(error(429, "RESOURCE_EXHAUSTED", retry_after="5")) == Throttled("RESOURCE_EXHAUSTED", 5_000, whole=True)
    assert read(error(429, "RESOURCE_EXHAUSTED")) == Throttled("RESOURCE_EXHAUSTED", 60_000, whole=True)
    assert read(error(429, "RESOURCE_EXHAUSTED"), throttles=2) == Throttled("RESOURCE_EXHAUSTED", 240_000, whole=True)
    assert read(error(429, "RESOURCE_EXHAUSTED"), throttles=50) == Throttled(
        "RESOURCE_EXHAUSTED", 3_600_000, whole=True
    )


def test_a_retry_after_that_is_shorter_than_google_asks_for_does_not_shorten_the_wait() -> None:
    for retries_made in (0, 3):
        hinted = error(503, "UNAVAILABLE", retry_after="1")
        assert read(hinted, retries_made=retries_made) == read(error(503, "UNAVAILABLE"), retries_made=retries_made)


def test_retry_after_may_be_a_date() -> None:
    got = read(error(503, "UNAVAILABLE", retry_after=formatdate(NOW / 1000 + 90, usegmt=True)))
    assert isinstance(got, Unanswered)
    assert got.wait_ms == 90_000


@pytest.mark.parametrize("hint", ["soon", "-1", "1.5", "9" * 40, ""])
def test_a_retry_after_that_is_no_time_is_no_hint(hint: str) -> None:
    got = read(error(503, "UNAVAILABLE", retry_after=hint))
    assert isinstance(got, Unanswered)
    assert got == read(error(503, "UNAVAILABLE"))


@pytest.mark.parametrize(
    ("result", "first_s"),
    [
        (error(500, "INTERNAL"), 10),
        (error(503, "UNAVAILABLE"), 10),
        (error(400, "UNKNOWN", {"@type": FCM_ERROR, "errorCode": "UNSPECIFIED_ERROR"}), 10),
        (answer(500, b"<html>"), 10),
        (answer(503, b"<html>"), 10),
        (answer(504, b"<html>"), 10),
        (answer(418), 10),
        (Unknown("connection lost"), 10),
        (answer(502, b"<html>"), 30),
    ],
)
def test_the_first_retry_waits_as_google_asks_and_each_further_one_twice_as_long(result: Result, first_s: int) -> None:
    """Google's page on scale: not before 10 s, doubled, with jitter, an hour at most."""
    for retries_made, wait_s in [(0, first_s), (1, 2 * first_s), (3, 8 * first_s), (200, 3600)]:
        got = read(result, retries_made=retries_made)
        assert isinstance(got, Unanswered)
        assert got.wait_ms is not None
        assert wait_s * 1000 <= got.wait_ms <= wait_s * 1300


def test_what_failed_together_comes_back_apart() -> None:
    waits = set()
    for one in fresh_ids(1000):
        to = delivery(Platform("android"), ANDROID_TOKEN, notification(notification_id=one))
        got = outcome_of(error(503, "UNAVAILABLE"), to, NOW)
        assert isinstance(got, Unanswered)
        assert got.wait_ms is not None
        waits.add(got.wait_ms // 100)
    assert len(waits) > 25


INVALID_TOKEN = "The registration token is not a valid FCM registration token"


@shows("S3-58")
@pytest.mark.parametrize(
    ("result", "smart", "remove", "refuse"),
    [
        (says("INVALID_ARGUMENT", 400, field="message.token"), Gone, Gone, Refused),
        (says("INVALID_ARGUMENT", 400, field="message.fid"), Gone, Gone, Refused),
        (says("INVALID_ARGUMENT", 400, INVALID_TOKEN), Gone, Gone, Refused),
        (says("INVALID_ARGUMENT", 400, INVALID_TOKEN, field="message.android.ttl"), Refused, Gone, Refused),
        (says("INVALID_ARGUMENT", 400), Refused, Gone, Refused),
        (error(400, "INVALID_ARGUMENT"), Refused, Gone, Refused),
    ],
)
def test_the_app_says_when_an_invalid_argument_forgets_the_token(
    result: Result, smart: type[Outcome], remove: type[Outcome], refuse: type[Outcome]
) -> None:
    assert isinstance(read(result, TokenRules(invalid_argument="smart")), smart)
    assert isinstance(read(result, TokenRules(invalid_argument="remove")), remove)
    assert isinstance(read(result, TokenRules(invalid_argument="refuse")), refuse)


def violated(*violations: object) -> Answer:
    """A BadRequest as Google writes it."""
    return error(400, "INVALID_ARGUMENT", {"@type": BAD_REQUEST, "fieldViolations": list(violations)})


RULE = CODES["INVALID_ARGUMENT"][1]


def test_the_fields_that_google_names_reach_the_reason() -> None:
    one = {"field": "message.android.ttl", "description": "Invalid value at 'message.android.ttl'"}
    other = {"field": "message.data[3].value", "description": 'Invalid value (TYPE_STRING), "secret of the user"'}
    assert read(violated(one)) == Refused("INVALID_ARGUMENT", f"{RULE}: message.android.ttl")
    got = read(violated(one, other))
    assert got == Refused("INVALID_ARGUMENT", f"{RULE}: message.android.ttl, message.data[3].value")


@pytest.mark.parametrize(
    "field",
    ["", "a secret text", "message.data['Dear Ann']", "x" * 200, ".".join("a" * 20), "message.\0", "é.b", 7, None, {}],
)
def test_what_is_no_field_path_is_never_quoted(field: object) -> None:
    """The description and the message may quote what was sent; they are left out."""
    assert read(violated({"field": field, "description": "secret"}, "secret", 7)) == Refused("INVALID_ARGUMENT", RULE)


def test_a_reason_names_three_fields_at_most() -> None:
    got = read(violated(*({"field": f"message.f{n}"} for n in range(50))))
    assert got == Refused("INVALID_ARGUMENT", f"{RULE}: message.f0, message.f1, message.f2")


def test_the_app_says_whether_a_token_of_another_project_is_forgotten() -> None:
    mismatch = says("SENDER_ID_MISMATCH", 403)
    assert isinstance(read(mismatch), Refused)
    assert isinstance(read(mismatch, TokenRules(sender_id_mismatch="remove")), Gone)
    assert isinstance(
        read(error(403, "PERMISSION_DENIED"), TokenRules(sender_id_mismatch="remove")), CredentialRejected
    )


# What each outcome leaves in the receipt and what an operator is told.
STORED: dict[type[Outcome], tuple[DeliveryStatus, FailureClass | None, bool]] = {
    Gone: (DeliveryStatus.FAILED, FailureClass.TERMINAL, True),
    Refused: (DeliveryStatus.FAILED, FailureClass.TERMINAL, True),
    CredentialRejected: (DeliveryStatus.PENDING, FailureClass.RETRYABLE, False),
    Throttled: (DeliveryStatus.PENDING, FailureClass.RETRYABLE, False),
    Unanswered: (DeliveryStatus.PENDING, FailureClass.RETRYABLE, False),
}
EACH = [
    *(
        (error(status, name, *([{"@type": FCM_ERROR, "errorCode": code}] if code else [])), code or name, outcome)
        for status, name, code, outcome in ROWS
    ),
    *((answer(status, b"<html>"), f"http_{status}", outcome) for status, outcome in HTML_ROWS),
]  # fmt: skip - one line a source of rows


@pytest.mark.parametrize(("result", "code", "outcome"), EACH, ids=[code for _, code, _ in EACH])
def test_each_error_is_settled_stored_and_told(
    result: Answer, code: str, outcome: type[Outcome], table: AddRow
) -> None:
    one = delivery(Platform("android"), ANDROID_TOKEN, notification(ttl_ms=DAY_MS))
    got = outcome_of(result, one, NOW)
    settlement = decide(got, one, EXPONENTIAL, NOW, 0.0, rest_after(got))
    pending = Receipt(one.id, 0, one.device.device_id, one.channel, DeliveryStatus.PENDING)
    stored = apply(pending, Change(0, 1, settlement, NOW, Attempt(NOW, "x", code, "", b"")))
    assert stored is not None
    status, failure_class, dead = STORED[outcome]
    assert (stored.status, stored.failure_class, stored.dead, stored.code) == (status, failure_class, dead, code)
    if outcome is Gone:
        assert stored.reason == "gone"
    elif outcome is Refused:
        assert stored.reason == CODES[code][1]
    elif isinstance(got, CredentialRejected):
        assert got.reach is Reach.CREDENTIAL, "FCM knows nothing smaller"
        assert (stored.reason, stored.retries) == (CODES[code][1], 0)
    else:
        assert stored.due_at is not None and stored.due_at >= NOW + 10_000
    told = Told()
    CredentialWatch(one.credential, told, lambda: 0).heed(got)
    assert [event for event, _ in told.events] == ([Event.CREDENTIAL_DENIED] if outcome is CredentialRejected else [])
    add_error_row(table, "fcm", result.status, got, settlement, stored)


WORDS = {
    Meaning.DEAD_TOKEN: "gone",
    Meaning.REFUSED: "refused",
    Meaning.DENIED: "denied",
    Meaning.THROTTLED_WHOLE: "throttled",
    Meaning.UNSURE: "unanswered",
}
OF_OTHERS = {"oauth_unavailable": "unreachable", "invalid_grant": "denied", "metadata_denied": "denied"}
"""What the token endpoint and the metadata server lead to."""


def test_the_page_for_operators_has_the_same_table() -> None:
    """docs/providers/fcm.md, section "Errors": each code with our words for it and what Waypost does."""
    page = (Path(__file__).parents[4] / "docs" / "providers" / "fcm.md").read_text()
    documented = {code: (why, does) for code, (why, does, _) in rows_of_page(page.partition("## Errors")[2]).items()}
    ours = {code: (why, WORDS[meaning]) for code, (meaning, why) in CODES.items()}
    assert set(documented) == {*ours, *OF_OTHERS}
    for code, (why, does) in ours.items():
        assert documented[code][0] == why
        assert re.split("[,;]", documented[code][1])[0] == does
    for code, does in OF_OTHERS.items():
        assert documented[code][1] == does


def test_only_our_own_access_token_is_renewed() -> None:
    assert asks_for_a_new_access_token(error(401, "UNAUTHENTICATED"))
    assert asks_for_a_new_access_token(answer(401, b"<html>"))
    apns = {"@type": FCM_ERROR, "errorCode": "THIRD_PARTY_AUTH_ERROR"}
    assert not asks_for_a_new_access_token(error(401, "UNAUTHENTICATED", apns))
    assert not asks_for_a_new_access_token(error(403, "PERMISSION_DENIED"))
    assert not asks_for_a_new_access_token(Unsent("x"))


def test_not_written_is_unreachable_and_no_answer_is_unanswered() -> None:
    assert read(Unsent("queue full")) == Unreachable("not_sent", "queue full")
    lost = read(Unknown("connection lost"))
    assert isinstance(lost, Unanswered)
    assert (lost.code, lost.why) == ("connection_lost", "connection lost")


@pytest.mark.parametrize("body", [b'{"error":7}', b'{"error":{"details":"x"}}', b"[]", b"\xff", b'{"error":{}}'])
def test_json_of_another_shape_is_read_by_its_status(body: bytes) -> None:
    got = read(answer(503, body))
    assert isinstance(got, Unanswered)
    assert got.code == "http_503"
