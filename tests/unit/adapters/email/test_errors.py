"""What each answer of an SMTP server leads to, and that the operators' page says the same."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.adapters.error_rows import rows_of_page
from waypost.channels.email.errors import CODES, LATER, REFUSED, STATUSES, Stage, outcome_of_reply
from waypost.channels.push.answers import Meaning
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

PAGE = Path(__file__).parents[4] / "docs" / "providers" / "smtp.md"
WORDS = {
    Meaning.DEAD_TOKEN: "gone",
    Meaning.REFUSED: "refused",
    Meaning.DENIED: "denied",
    Meaning.THROTTLED: "throttled",
    Meaning.THROTTLED_WHOLE: "throttled",
    Meaning.NOT_TAKEN: "unreachable",
}


@pytest.mark.parametrize(
    ("code", "text", "want", "named"),
    [
        (421, "4.7.0 Try again later", Throttled, "smtp_421_4.7.0"),
        (421, "Service not available", Throttled, "smtp_421"),
        (450, "4.2.0 Mailbox busy", Throttled, "smtp_450"),
        (450, "4.7.1 Greylisted", Throttled, "smtp_450_4.7.1"),
        (451, "4.3.0 Local error", Unreachable, "smtp_451"),
        (452, "4.2.2 Over quota", Unreachable, "smtp_452_4.2.2"),
        (499, "Odd", Unreachable, "smtp_499"),
        (550, "5.1.1 User unknown", Gone, "smtp_550_5.1.1"),
        (550, "5.1.10 Null MX", Gone, "smtp_550_5.1.10"),
        (550, "5.2.1 Disabled", Gone, "smtp_550_5.2.1"),
        (556, "No mail here", Gone, "smtp_556"),
        (550, "User unknown", Refused, "smtp_550"),
        (550, "5.999.999 Odd", Refused, "smtp_550"),
        (550, "4.1.1 Contradictory", Refused, "smtp_550"),
        (552, "5.3.4 Too large", Refused, "smtp_552_5.3.4"),
        (554, "5.7.1 Spam", Refused, "smtp_554_5.7.1"),
        (550, "5.1.8 Sender's domain", CredentialRejected, "smtp_550_5.1.8"),
        (535, "5.7.8 Bad password", CredentialRejected, "smtp_535_5.7.8"),
    ],
)
def test_each_answer_about_the_recipient_leads_to_one_outcome(
    code: int, text: str, want: type[Outcome], named: str
) -> None:
    for stage in (Stage.RCPT, Stage.DATA, Stage.DOT):
        got = outcome_of_reply(code, text, stage)
        assert type(got) is want
        assert not isinstance(got, Taken)
        assert got.code == named


@pytest.mark.parametrize(
    ("code", "text", "stage", "want"),
    [
        (554, "5.7.1 Your address is listed", Stage.GREETING, Unreachable),
        (454, "4.7.0 TLS not available", Stage.GREETING, Unreachable),
        (421, "4.7.0 Too many", Stage.GREETING, Throttled),
        (535, "5.7.8 Bad password", Stage.LOGIN, CredentialRejected),
        (534, "5.7.9 Another mechanism", Stage.LOGIN, CredentialRejected),
        (550, "5.1.1 Odd", Stage.LOGIN, CredentialRejected),
        (454, "4.7.0 Temporary", Stage.LOGIN, Unreachable),
        (550, "5.1.1 Who are you", Stage.MAIL, CredentialRejected),
        (553, "5.7.1 Not your address", Stage.MAIL, CredentialRejected),
        (552, "5.3.4 Too large", Stage.MAIL, Refused),
        (450, "4.7.1 Slower", Stage.MAIL, Throttled),
    ],
)
def test_before_the_recipient_was_named_nothing_is_said_of_one(
    code: int, text: str, stage: Stage, want: type[Outcome]
) -> None:
    got = outcome_of_reply(code, text, stage)
    assert type(got) is want
    if isinstance(got, CredentialRejected):
        assert got.reach is Reach.CREDENTIAL
    if isinstance(got, Throttled):
        assert got.whole


@given(st.integers(-1, 999), st.text(max_size=30), st.sampled_from(Stage))
def test_no_answer_but_a_success_is_one_and_only_the_dot_leaves_doubt(code: int, text: str, stage: Stage) -> None:
    got = outcome_of_reply(code, text, stage)
    assert not isinstance(got, Taken)
    assert isinstance(got, Unanswered) == (stage is Stage.DOT and not 400 <= code <= 599)
    assert not (isinstance(got, Gone) and stage < Stage.RCPT)


def test_the_operators_page_has_the_same_table() -> None:
    section = PAGE.read_text().split("<!-- errors -->")[1].split("<!-- end -->")[0]
    table = {f"smtp_{code}": meant for code, meant in CODES.items()}
    table |= {f"smtp_{enhanced[0]}xx_{enhanced}": meant for enhanced, meant in STATUSES.items()}
    table |= {"smtp_4xx": LATER, "smtp_5xx": REFUSED}
    assert rows_of_page(section) == {code: (why, WORDS[meaning]) for code, (meaning, why) in table.items()}
