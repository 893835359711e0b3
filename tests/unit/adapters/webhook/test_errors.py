"""Every answer of a receiver: one meaning each (S4-45, S4-46)."""

from __future__ import annotations

import pytest

from tests.shows import shows
from tests.unit.adapters.deliveries import NOW, answer
from waypost.channels.webhook.errors import outcome_of
from waypost.domain.outcome import Gone, Outcome, Refused, Taken, Throttled, Unanswered, Unreachable
from waypost.http2 import Lost, Unknown, Unsent


@shows("S4-45", "S4-46")
@pytest.mark.parametrize(
    ("statuses", "want"),
    [
        (range(200, 300), Taken),
        (range(300, 400), Refused),
        (sorted(set(range(400, 500)) - {408, 410, 429}), Refused),
        ([408, *range(500, 600)], Unanswered),
        ([410], Gone),
        ([429], Throttled),
    ],
)
def test_each_status(statuses: range | list[int], want: type[Outcome]) -> None:
    assert {type(outcome_of(answer(status, b"SECRET"), NOW)) for status in statuses} == {want}
    assert all("SECRET" not in repr(outcome_of(answer(status, b"SECRET"), NOW)) for status in statuses)


def test_a_wait_that_is_asked_for_is_kept() -> None:
    assert outcome_of(answer(429, b"", **{"retry-after": "7"}), NOW) == Throttled("http_429", 7_000)
    assert outcome_of(answer(503, b"", **{"retry-after": "9"}), NOW) == Unanswered(
        "http_503", "the receiver failed", 9_000
    )


def test_no_answer() -> None:
    assert isinstance(outcome_of(Unsent("no connection"), NOW), Unreachable)
    assert isinstance(outcome_of(Unknown("cut", Lost.TIMEOUT), NOW), Unanswered)
