"""What decides an answer is read alone: no other field, whatever its value, changes the verdict."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.adapters.deliveries import ANDROID_TOKEN, IOS_TOKEN, NOW, answer, delivery
from waypost.channels.apns.errors import BROADCAST_REASONS, REASONS
from waypost.channels.apns.errors import STATUSES as APNS_STATUSES
from waypost.channels.apns.errors import outcome_of as apns_outcome
from waypost.channels.fcm.errors import CODES
from waypost.channels.fcm.errors import outcome_of as fcm_outcome
from waypost.channels.unifiedpush.errors import outcome_of as unifiedpush_outcome
from waypost.channels.webpush.errors import APPLE, MOZILLA, PHRASES
from waypost.channels.webpush.errors import STATUSES as WEBPUSH_STATUSES
from waypost.channels.webpush.errors import outcome_of as webpush_outcome
from waypost.domain.device import Platform
from waypost.domain.outcome import CredentialRejected, Gone, Outcome, Refused, Taken, Throttled, Unanswered
from waypost.http2 import Answer

DEAD = ("Unregistered", "ExpiredToken")
TO_IOS = delivery(Platform("ios"), IOS_TOKEN)
TO_ANDROID = delivery(Platform("android"), ANDROID_TOKEN)
FCM_ERROR = "type.googleapis.com/google.firebase.fcm.v1.FcmError"

anything = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**30), 10**30) | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
"""Any JSON."""
others = st.dictionaries(st.text().filter(lambda key: key not in ("reason", "errno", "error")), anything, max_size=3)
"""Fields that decide nothing."""


def body(document: Any) -> bytes:
    return msgspec.json.encode(document)


def apns(status: int, said: bytes = b"") -> Outcome:
    return apns_outcome(answer(status, said), TO_IOS, DEAD, NOW)


def fcm(status: int, said: bytes = b"") -> Outcome:
    return fcm_outcome(answer(status, said), TO_ANDROID, NOW)


def webpush(status: int, said: bytes = b"") -> Outcome:
    return webpush_outcome(answer(status, said), NOW)


def unifiedpush(status: int, said: bytes = b"") -> Outcome:
    return unifiedpush_outcome(answer(status, said), NOW)


@given(st.sampled_from(sorted(REASONS)), anything, others)
def test_apples_word_decides_whatever_stands_beside_it(reason: str, timestamp: Any, beside: dict[str, Any]) -> None:
    plain = apns(410, body({"reason": reason}))
    odd = apns(410, body(beside | {"reason": reason, "timestamp": timestamp}))
    if isinstance(odd, Gone):
        assert odd.since is None or 0 < odd.since <= NOW
        odd = msgspec.structs.replace(odd, since=None)
    assert odd == plain


@pytest.mark.parametrize(
    ("timestamp", "since"),
    [
        ("1700000000000", 1_700_000_000_000),
        ("1.7e12", 1_700_000_000_000),
        ("1700000000000.5", 1_700_000_000_000),
        ("4102444800000", None),
        ("9" * 40, None),
        ("1e400", None),
        ("-1", None),
        ("null", None),
        ('"1700000000000"', None),
        ("[" * 20_000 + "]" * 20_000, None),
    ],
)
def test_a_death_is_dated_where_its_time_can_be_and_is_over(timestamp: str, since: int | None) -> None:
    got = apns(410, b'{"reason":"Unregistered","timestamp":%s}' % timestamp.encode())
    assert isinstance(got, Gone)
    assert got.since == since


@given(st.sampled_from(sorted(CODES)), anything, anything, st.lists(anything, max_size=2), others)
def test_fcms_code_decides_whatever_stands_beside_it(
    code: str, message: Any, status: Any, details: list[Any], beside: dict[str, Any]
) -> None:
    named = {"@type": FCM_ERROR, "errorCode": code}
    plain = fcm(400, body({"error": {"details": [named]}}))
    odd = {"code": message, "message": message, "status": status, "details": [*details, beside | named]}
    assert fcm(400, body(beside | {"error": odd})) == plain


@given(st.sampled_from(["INVALID_ARGUMENT", "NOT_FOUND", "UNAUTHENTICATED", "UNAVAILABLE"]), anything, anything)
def test_googles_status_decides_where_the_details_say_nothing(status: str, message: Any, details: Any) -> None:
    plain = fcm(400, body({"error": {"status": status}}))
    assert fcm(400, body({"error": {"status": status, "message": message, "details": details}})) == plain


def test_an_error_in_a_list_and_details_without_one_are_read() -> None:
    named = {"@type": FCM_ERROR, "errorCode": "UNREGISTERED"}
    assert fcm(404, body([{"error": {"status": "NOT_FOUND", "details": named}}])) == Gone("UNREGISTERED")


@given(st.sampled_from(sorted(APPLE)), anything, others)
def test_the_word_of_a_push_service_decides_whatever_stands_beside_it(
    reason: str, errno: Any, beside: dict[str, Any]
) -> None:
    odd = body(beside | {"reason": reason, "errno": errno})
    assert webpush(400, odd) == webpush(400, body({"reason": reason}))


@given(st.sampled_from(sorted(MOZILLA)), others)
def test_mozillas_number_decides_whatever_stands_beside_it(name: str, beside: dict[str, Any]) -> None:
    errno = int(name.removeprefix("errno_"))
    assert webpush(502, body(beside | {"errno": errno})) == webpush(502, body({"errno": errno}))


@given(st.integers(200, 299), anything)
def test_any_status_of_success_is_one_whatever_the_body(status: int, document: Any) -> None:
    for of in (apns, fcm, webpush, unifiedpush):
        for said in (b"", b"<html>", b"\xff", body(document)):
            assert isinstance(of(status, said), Taken)


@given(st.text(min_size=1), st.sampled_from(["\0", "\n", "x" * 1_001]))
def test_a_name_that_cannot_be_stored_is_left_out(text: str, odd: str) -> None:
    assert fcm(200, body({"name": text + odd})) == Taken("")
    assert apns_outcome(Answer(200, ((b"apns-id", odd.encode()),), b""), TO_IOS, DEAD, NOW) == Taken("")


BARE: list[tuple[int, type[Outcome], type[Outcome], type[Outcome]]] = [
    # status, APNs, FCM, Web Push
    (400, Refused, Refused, Refused),
    (403, CredentialRejected, CredentialRejected, CredentialRejected),
    (404, Refused, Refused, Gone),
    (405, Refused, Unanswered, Refused),
    (410, Gone, Unanswered, Gone),
    (413, Refused, Refused, Refused),
    (429, Throttled, Throttled, Throttled),
    (500, Unanswered, Unanswered, Unanswered),
    (502, Unanswered, Unanswered, Unanswered),
    (503, Unanswered, Unanswered, Unanswered),
    (504, Unanswered, Unanswered, Unanswered),
]


@pytest.mark.parametrize(
    "said", [b"", b" ", b"<html>", b"{}", b'{"reason":7}', b'{"error":"x"}', b"\xff", b"[" * 60_000]
)
@pytest.mark.parametrize(("status", "by_apns", "by_fcm", "by_webpush"), BARE)
def test_an_answer_without_a_word_is_decided_by_its_status(
    status: int, by_apns: type[Outcome], by_fcm: type[Outcome], by_webpush: type[Outcome], said: bytes
) -> None:
    for got, expected in (
        (apns(status, said), by_apns),
        (fcm(status, said), by_fcm),
        (webpush(status, said), by_webpush),
    ):
        assert isinstance(got, expected)
        assert not isinstance(got, Taken)
        assert got.code == f"http_{status}"


@given(st.integers(300, 599))
def test_every_status_without_a_body_is_decided(status: int) -> None:
    """What no table has is taken for no answer: tried again, and never under at_most_once."""
    for of, known in (
        (apns, set(APNS_STATUSES)),
        (fcm, set(CODES)),
        (webpush, {f"http_{each}" for each in WEBPUSH_STATUSES} | {f"http_{each}" for each in range(300, 400)}),
    ):
        got = of(status)
        assert not isinstance(got, Taken)
        assert got.code == f"http_{status}"
        assert got.code in known or isinstance(got, Unanswered)


def says_a_phrase(word: str) -> bool:
    """Whether the word, said over and over, has in it what a push service says of one subscription."""
    return any(phrase in (word * 50).lower().encode(errors="replace") for phrase, _, _ in PHRASES.values())


@given(st.text().filter(lambda word: not says_a_phrase(word)), st.sampled_from([400, 403, 410, 500]))
def test_a_word_that_has_not_the_form_of_one_is_not_kept(word: str, status: int) -> None:
    """A code goes into receipts, logs and metrics: no NUL, no line break, nothing long."""
    for of, document in (
        (apns, {"reason": word + "\0"}),
        (fcm, {"error": {"status": word + "\n"}}),
        (webpush, {"reason": word * 50 + "!"}),
    ):
        got = of(status, body(document))
        assert not isinstance(got, Taken)
        assert got.code == f"http_{status}"


def test_a_broadcast_forgets_nobody() -> None:
    assert BROADCAST_REASONS["http_410"][0].name == "REFUSED"
