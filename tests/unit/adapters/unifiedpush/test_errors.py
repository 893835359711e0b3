"""What each answer of a push server leads to, and that the operators' page says the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.adapters.deliveries import NOW, answer
from tests.unit.adapters.error_rows import rows_of_page
from waypost.channels.push.answers import Meaning
from waypost.channels.unifiedpush.errors import REDIRECTED, STATUSES, outcome_of
from waypost.domain.outcome import Gone, Outcome, Refused, Taken, Throttled, Unanswered, Unreachable
from waypost.http2 import Unknown, Unsent

PAGE = Path(__file__).parents[4] / "docs" / "providers" / "unifiedpush.md"
WORDS = {
    Meaning.DEAD_TOKEN: "gone",
    Meaning.REFUSED: "refused",
    Meaning.THROTTLED: "throttled",
    Meaning.UNSURE: "unanswered",
}


@pytest.mark.parametrize("status", [200, 201, 202, 204, 299])
def test_every_status_of_success_is_one(status: int) -> None:
    """SERV_1.2: 200 to 299 are to be read as 201; ntfy says 200."""
    assert outcome_of(answer(status, b'{"id":"x"}'), NOW) == Taken()


@pytest.mark.parametrize(
    ("status", "outcome"),
    [
        (301, Refused),
        (307, Refused),
        (400, Refused),
        (401, Refused),
        (403, Refused),
        (404, Gone),
        (405, Refused),
        (410, Gone),
        (413, Refused),
        (418, Unanswered),
        (429, Throttled),
        (500, Unanswered),
        (502, Unanswered),
        (503, Unanswered),
        (504, Unanswered),
        (507, Unanswered),
    ],
)
def test_each_answer_leads_to_one_outcome(status: int, outcome: type[Outcome]) -> None:
    got = outcome_of(answer(status, b'{"code":50701,"error":"anything"}'), NOW)
    assert isinstance(got, outcome)
    assert not isinstance(got, Taken)
    assert got.code == f"http_{status}"


def test_too_many_requests_is_said_of_one_endpoint_and_waits_as_long_as_it_says() -> None:
    """SERV_1.2: limits are honored by endpoint, not by host."""
    assert outcome_of(answer(429, retry_after="7"), NOW) == Throttled("http_429", 7_000, whole=False)


def test_without_an_answer_it_counts_whether_something_was_written() -> None:
    assert isinstance(outcome_of(Unsent("no connection"), NOW), Unreachable)
    assert isinstance(outcome_of(Unknown("no answer before the deadline"), NOW), Unanswered)


def test_the_operators_page_has_the_same_table() -> None:
    section = PAGE.read_text().split("<!-- errors -->")[1].split("<!-- end -->")[0]
    table = {f"http_{status}": meant for status, meant in STATUSES.items()} | {"http_3xx": REDIRECTED}
    assert rows_of_page(section) == {code: (why, WORDS[meaning]) for code, (meaning, why) in table.items()}
