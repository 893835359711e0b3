"""What each answer of Twilio leads to, and that the operators' page says the same."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from tests.unit.adapters.deliveries import NOW, answer
from tests.unit.adapters.error_rows import rows_of_page
from waypost.channels.push.answers import Meaning
from waypost.channels.sms.errors import CODES, STATUSES, outcome_of
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
from waypost.http2 import Unknown, Unsent

PAGE = Path(__file__).parents[4] / "docs" / "providers" / "twilio.md"
WORDS = {
    Meaning.DEAD_TOKEN: "gone",
    Meaning.REFUSED: "refused",
    Meaning.REFUSED_HERE: "refused",
    Meaning.DENIED: "denied",
    Meaning.THROTTLED_WHOLE: "throttled",
    Meaning.UNSURE: "unanswered",
}


def said(status: int, code: int, **headers: str) -> Outcome:
    """What Twilio says with a code in its JSON."""
    body = {"code": code, "message": "x", "more_info": "x", "status": status}
    return outcome_of(answer(status, msgspec.json.encode(body), **headers), NOW)


def test_a_message_that_was_taken_is_known_by_its_sid() -> None:
    assert outcome_of(answer(201, b'{"sid":"SM1","status":"queued"}'), NOW) == Taken("SM1")


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b'{"sid":null}', b'{"sid":7}'])
def test_success_that_cannot_be_read_is_success(body: bytes) -> None:
    """It is charged, and must not be sent again."""
    assert isinstance(outcome_of(answer(201, body), NOW), Taken)


@pytest.mark.parametrize(
    ("status", "code", "outcome"),
    [
        (400, 21211, Gone),
        (400, 21610, Gone),
        (400, 21614, Gone),
        (400, 21635, Gone),
        (400, 21408, Refused),
        (400, 21612, Refused),
        (400, 21617, Refused),
        (400, 21606, CredentialRejected),
        (400, 21609, CredentialRejected),
        (401, 20003, CredentialRejected),
        (403, 30002, CredentialRejected),
        (429, 20429, Throttled),
        (400, 21611, Throttled),
        (400, 30001, Throttled),
    ],
)
def test_the_code_decides(status: int, code: int, outcome: type[Outcome]) -> None:
    got = said(status, code)
    assert isinstance(got, outcome) and not isinstance(got, Taken)
    assert got.code == str(code)


@pytest.mark.parametrize(
    ("status", "outcome"),
    [
        (400, Refused),
        (401, CredentialRejected),
        (403, CredentialRejected),
        (404, CredentialRejected),
        (418, Unanswered),
        (429, Throttled),
        (500, Unanswered),
        (502, Unanswered),
        (503, Unanswered),
        (504, Unanswered),
    ],
)
@pytest.mark.parametrize("body", [b"", b"<html>502</html>", b'{"code":99999}', b'{"code":"x"}'])
def test_without_a_code_that_is_known_the_status_decides(status: int, outcome: type[Outcome], body: bytes) -> None:
    got = outcome_of(answer(status, body), NOW)
    assert isinstance(got, outcome) and not isinstance(got, Taken)
    assert got.code == f"http_{status}"


def test_a_refused_account_is_refused_as_a_whole_and_throttling_waits_as_long_as_it_says() -> None:
    rejected = said(401, 20003)
    assert isinstance(rejected, CredentialRejected) and rejected.reach is Reach.CREDENTIAL
    assert said(429, 20429, retry_after="7") == Throttled("20429", 7_000, whole=True)


def test_what_this_account_may_not_send_another_may() -> None:
    elsewhere = {code for code in CODES if isinstance(got := said(400, code), Refused) and got.elsewhere}
    assert elsewhere == {21408, 21608, 21612}


def test_without_an_answer_it_counts_whether_something_was_written() -> None:
    assert isinstance(outcome_of(Unsent("no connection"), NOW), Unreachable)
    assert isinstance(outcome_of(Unknown("no answer before the deadline"), NOW), Unanswered)


def test_the_operators_page_has_the_same_table() -> None:
    section = PAGE.read_text().split("<!-- errors -->")[1].split("<!-- end -->")[0]
    table = {str(code): meant for code, meant in CODES.items()}
    table |= {f"http_{status}": meant for status, meant in STATUSES.items()}
    assert rows_of_page(section) == {code: (why, WORDS[meaning]) for code, (meaning, why) in table.items()}
