"""Every answer of a push service: outcome, settlement, what is stored, and what the operator's page says of it."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest

from tests.tables import AddRow
from tests.unit.adapters.deliveries import NOW, answer, delivery
from tests.unit.adapters.error_rows import add_error_row, reach_of, rest_after, rows_of_page
from waypost.channels.push.answers import Meaning
from waypost.channels.webpush.errors import (
    APPLE,
    MOZILLA,
    PHRASES,
    REDIRECTED,
    STATUSES,
    WINDOWS,
    of_one_service,
    outcome_of,
)
from waypost.domain.delivery import Receipt
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
from waypost.domain.settlement import Change, Settlement, apply, decide
from waypost.domain.status import DeliveryStatus
from waypost.http2 import Answer, Unknown, Unsent

PAGE = Path(__file__).parents[4] / "docs/providers/webpush.md"


class Led(NamedTuple):
    """Where a word of the table leads: the outcome, its settlement's name, and the receipt's status."""

    outcome: type[Outcome]
    settlement: str
    status: DeliveryStatus
    on_page: str


LEADS = {
    Meaning.DEAD_TOKEN: Led(Gone, "Forget", DeliveryStatus.FAILED, "gone"),
    Meaning.REFUSED: Led(Refused, "Dead", DeliveryStatus.FAILED, "refused"),
    Meaning.DENIED_SCOPE: Led(CredentialRejected, "Again", DeliveryStatus.PENDING, "denied"),
    Meaning.DENIED_DEVICE: Led(CredentialRejected, "Again", DeliveryStatus.PENDING, "denied"),
    Meaning.THROTTLED: Led(Throttled, "Again", DeliveryStatus.PENDING, "throttled"),
    Meaning.UNSURE: Led(Unanswered, "Again", DeliveryStatus.PENDING, "unanswered"),
}

APPLE_ROWS: list[tuple[int, str, type[Outcome]]] = [
    (400, "BadTtl", Refused),
    (400, "BadUrgency", Refused),
    (400, "BadWebPushRequest", Refused),
    (400, "BadWebPushTopic", Refused),
    (400, "VapidPkHashMismatch", Refused),
    (403, "VapidPkHashMismatch", Refused),
    (400, "IdleTimeout", Unanswered),
    (403, "BadAuthorizationHeader", CredentialRejected),
    (403, "BadJwtToken", CredentialRejected),
    (403, "BadVapidPublicKey", CredentialRejected),
    (404, "BadPath", Gone),
    (410, "Unregistered", Gone),
    (405, "MethodNotAllowed", Refused),
    (413, "PayloadTooLarge", Refused),
    (429, "TooManyRequests", Throttled),
    (500, "InternalServerError", Unanswered),
    (503, "ServiceUnavailable", Unanswered),
    (503, "Shutdown", Unanswered),
]
MOZILLA_ROWS: list[tuple[int, int, type[Outcome]]] = [
    (400, 101, Refused),
    (404, 102, Gone),
    (410, 103, Gone),
    (413, 104, Refused),
    (410, 105, Gone),
    (410, 106, Gone),
    (400, 108, Refused),
    (401, 109, CredentialRejected),
    (400, 110, Refused),
    (400, 111, Refused),
    (400, 112, Refused),
    (400, 113, Refused),
    (400, 114, Refused),
    (429, 201, Throttled),
    (503, 201, Unanswered),
    (503, 202, Unanswered),
    (502, 900, Unanswered),
    (502, 901, Unanswered),
    (502, 902, Unanswered),
    (502, 903, Unanswered),
    (500, 999, Unanswered),
]
WINDOWS_ROWS: list[tuple[int, str, type[Outcome]]] = [
    (201, "dropped", Refused),
    (201, "channelthrottled", Throttled),
    (200, "Dropped", Refused),
]
PHRASE_ROWS: list[tuple[int, str, str, type[Outcome]]] = [
    (401, '{"code":401,"errno":109,"message":"VAPID public key mismatch"}', "vapid_key_mismatch", Refused),
    (
        403,
        "the VAPID credentials in the authorization header do not correspond to the credentials used",
        "vapid_key_not_corresponding",
        Refused,
    ),
    (400, "<HTML><TITLE>UnauthorizedRegistration</TITLE></HTML>", "unauthorized_registration", Refused),
]
PLAIN_ROWS: list[tuple[int, type[Outcome]]] = [
    (400, Refused),
    (401, CredentialRejected),
    (403, CredentialRejected),
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
ROWS: list[tuple[Answer, str, type[Outcome]]] = [
    *((answer(status, b'{"reason":"%s"}' % reason.encode()), reason, kind) for status, reason, kind in APPLE_ROWS),
    *((answer(status, b'{"errno":%d}' % errno), f"errno_{errno}", kind) for status, errno, kind in MOZILLA_ROWS),
    *((answer(status, x_wns_status=word), f"wns_{word.lower()}", kind) for status, word, kind in WINDOWS_ROWS),
    *((answer(status, body.encode()), code, kind) for status, body, code, kind in PHRASE_ROWS),
    *((answer(status, b"text"), f"http_{status}", kind) for status, kind in PLAIN_ROWS),
]
TABLE: dict[str, tuple[Meaning, str]] = {
    **APPLE,
    **MOZILLA,
    **WINDOWS,
    **{code: (meaning, why) for code, (_, meaning, why) in PHRASES.items()},
    **{f"http_{status}": row for status, row in STATUSES.items()},
    "http_3xx": REDIRECTED,
}


def settled(outcome: Outcome) -> tuple[Settlement, Receipt]:
    """What is decided from it, and the receipt that is stored."""
    one = delivery(Platform("web"), "https://push.example/x")
    settlement = decide(outcome, one, EXPONENTIAL, NOW, 0.0, rest_after(outcome))
    before = Receipt(
        notification_id=one.id,
        n=0,
        device_id=one.device.device_id,
        channel=one.channel,
        status=DeliveryStatus.PENDING,
    )
    stored = apply(before, Change(n=0, attempt=1, settlement=settlement, at=NOW))
    assert stored is not None
    return settlement, stored


@pytest.mark.parametrize(("said", "code", "outcome"), ROWS, ids=[f"{row[0].status}-{row[1]}" for row in ROWS])
def test_each_answer_leads_to_one_outcome_one_settlement_and_one_receipt(
    said: Answer, code: str, outcome: type[Outcome], table: AddRow
) -> None:
    got = outcome_of(said, NOW)
    assert isinstance(got, outcome)
    assert not isinstance(got, Taken)
    assert got.code == code
    led = next(led for led in LEADS.values() if led.outcome is outcome)
    settlement, stored = settled(got)
    assert type(settlement).__name__ == led.settlement
    assert stored.status is led.status
    assert stored.code == code
    if isinstance(got, CredentialRejected | Refused | Unanswered):
        assert stored.reason == got.why
    spends = isinstance(got, Unanswered) or (isinstance(got, CredentialRejected) and got.reach is Reach.DEVICE)
    assert stored.retries == int(spends), "what one device alone may be refused for ends as a dead letter"
    add_error_row(table, "webpush", said.status, got, settlement, stored)


def test_the_rows_above_are_the_whole_table() -> None:
    tried = {code for _, code, _ in ROWS}
    assert {code for code in TABLE if code != "http_3xx"} <= tried
    assert tried - set(TABLE) == {"http_301", "http_307", "http_418"}


def test_the_operators_page_has_the_same_table() -> None:
    """Code, reason and what it leads to, row by row: docs/providers/webpush.md."""
    section = PAGE.read_text().split("<!-- errors -->")[1].split("<!-- end -->")[0]
    reaches = {code: reach_of(outcome_of(said, NOW), "push service", "push service") for said, code, _ in ROWS}
    reaches["http_3xx"] = reaches["http_301"]
    assert rows_of_page(section) == {
        code: (why, LEADS[meaning].on_page, reaches[code]) for code, (meaning, why) in TABLE.items()
    }


@pytest.mark.parametrize("status", [200, 201, 202])
def test_success_names_the_message_where_the_service_does(status: int) -> None:
    assert outcome_of(answer(status, location="/m/1"), NOW) == Taken("/m/1")
    assert outcome_of(answer(status, apns_id="EC1B"), NOW) == Taken("EC1B")
    assert outcome_of(answer(status, x_wns_status="received"), NOW) == Taken("")
    assert outcome_of(answer(status), NOW) == Taken("")


def test_windows_says_in_a_header_that_a_subscription_is_of_another_key() -> None:
    said = answer(400, x_wns_error_description="VAPID key mismatch", x_wns_status="dropped")
    got = outcome_of(said, NOW)
    assert isinstance(got, Refused)
    assert got.code == "vapid_key_mismatch"


@pytest.mark.parametrize("body", [b'{"reason":null,"errno":null}', b"[]", b'{"errno":"x"}', b"<html>", b"\xff", b"{}"])
def test_a_body_that_says_nothing_leaves_it_to_the_status(body: bytes) -> None:
    got = outcome_of(answer(503, body), NOW)
    assert isinstance(got, Unanswered)
    assert got.code == "http_503"


def test_retry_after_is_honoured() -> None:
    assert outcome_of(answer(429, retry_after="9"), NOW) == Throttled("http_429", 9_000, whole=True)
    got = outcome_of(answer(503, retry_after="120"), NOW)
    assert isinstance(got, Unanswered)
    assert got.wait_ms == 120_000


@pytest.mark.parametrize(
    ("status", "body", "whole"),
    [
        (429, b"", True),
        (429, b'{"errno": 202}', True),
        (429, b'{"reason": "TooManyRequests"}', False),
        (406, b"", False),
    ],
)
def test_whom_throttling_speaks_of(status: int, body: bytes, whole: bool) -> None:
    """429 may be said of all that goes to the push service; Apple's word and 406 of Windows are of one subscription."""
    got = outcome_of(answer(status, body), NOW)
    assert isinstance(got, Throttled)
    assert got.whole is whole


def test_the_reason_never_quotes_the_answer() -> None:
    """A push service is not trusted: what it writes reaches neither receipts nor logs, but for Apple's word."""
    for status in (*STATUSES, 418, 301):
        shown = msgspec.json.encode(outcome_of(answer(status, b"do not quote me", location="https://x"), NOW))
        assert b"quote" not in shown
        assert b"https" not in shown


def test_a_stranger_that_refuses_our_identity_stops_nobody_else() -> None:
    """Allowed by ``*`` alone, anybody may bring a push service that answers 401 to everything."""
    got = of_one_service(outcome_of(answer(401), NOW))
    assert isinstance(got, Refused)
    assert got.code == "http_401"
    assert of_one_service(Taken("x")) == Taken("x")


def test_not_written_is_unreachable_and_no_answer_is_unanswered() -> None:
    assert outcome_of(Unsent("queue full"), NOW) == Unreachable("not_sent", "queue full")
    assert outcome_of(Unknown("connection lost"), NOW) == Unanswered("connection_lost", "connection lost")
