"""A check passes what is right, fails what is wrong with the reason, and says what it could not see."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from waypost.lab.check.cases import CASES, GATEWAYS, Case, Want
from waypost.lab.check.judgement import SeenRequests, complete, judge
from waypost.lab.check.run import CheckOrder, chosen
from waypost.lab.faults import Do
from waypost.lab.records import RequestRecord


def record(token: str, *, accepted: bool = True, reason: str = "", at: float = 0.0) -> RequestRecord:
    return RequestRecord(0, at, "apns", 1, token, "", "alert", 200 if accepted else 400, reason, accepted)


def refused(token: str, at: float = 0.0) -> RequestRecord:
    return record(token, accepted=False, reason="Bad", at=at)


def seen(
    *requests: RequestRecord, faults: int = 0, acted: int = 0, violations: Mapping[str, int] | None = None,
    message_ids: Sequence[str] = (),
) -> SeenRequests:  # fmt: skip
    by_token: dict[str, list[RequestRecord]] = {}
    for request in requests:
        by_token.setdefault(request.token, []).append(request)
    return SeenRequests(("a", "b"), by_token, violations or {}, faults, acted, "trap", message_ids)


PLAIN = Case(name="plain", says="", targets=2)
FAULTY = Case(name="faulty", says="", targets=2, first={"apns": Do(drop=True)})
FINAL = Case(
    name="final", says="", targets=2, first={"apns": Do(drop=True)}, want=Want(accepted=0, max_requests=1)
)  # fmt: skip
PAUSED = Case(name="paused", says="", targets=2, first={"apns": Do(drop=True)}, want=Want(pause_s=2))

REPEATED = Case(
    name="repeated", says="", targets=2, first={"apns": Do(drop=True)}, want=Want(accepted=2, one_message_id=True)
)

JUDGED: list[tuple[Case, SeenRequests, str, str]] = [
    (PLAIN, seen(record("a"), record("b")), "passed", ""),
    (PLAIN, seen(), "not exercised", "nothing arrived"),
    (PLAIN, seen(record("a")), "failed", "1 of 2 did not arrive"),
    (PLAIN, seen(record("a"), refused("b")), "failed", "1 of 2 did not arrive; refused: Bad (1)"),
    (PLAIN, seen(record("a"), refused("b"), record("b")), "failed", "refused: Bad"),
    (PLAIN, seen(record("a"), record("a"), record("b")), "failed", "2 copies were taken, not 1"),
    (PLAIN, seen(record("a"), record("b"), record("b")), "failed", "a message arrived more than once"),
    (PLAIN, seen(record("a"), record("b"), violations={"too many streams": 2}), "failed", "too many streams (2)"),
    (PLAIN, seen(record("a"), record("b"), record("trap")), "failed", "the redirect was followed"),
    (FAULTY, seen(record("a"), record("b"), faults=1, acted=1), "passed", ""),
    (FAULTY, seen(record("a"), record("b"), faults=1), "not exercised", "the fault was never met"),
    (FINAL, seen(refused("a"), record("b"), faults=1, acted=1), "passed", ""),
    (FINAL, seen(refused("a"), refused("a"), record("b"), faults=1, acted=2), "failed", "2 requests, at most 1"),
    (PAUSED, seen(refused("a"), record("a", at=2.0), record("b"), faults=1, acted=1), "passed", ""),
    (
        REPEATED,
        seen(record("a"), record("a"), record("b"), faults=1, acted=1, message_ids=("<1@a>", "<1@a>")),
        "passed",
        "",
    ),
    (
        REPEATED,
        seen(record("a"), record("a"), record("b"), faults=1, acted=1, message_ids=("<1@a>", "<2@a>")),
        "failed",
        "the repeated message has another Message-ID",
    ),
    (PAUSED, seen(refused("a"), record("a", at=1.0), record("b"), faults=1, acted=1), "failed", "tried again after"),
]


@pytest.mark.parametrize(("case", "what", "verdict", "why"), JUDGED)
def test_what_was_seen_is_judged(case: Case, what: SeenRequests, verdict: str, why: str) -> None:
    result = judge(case, "apns", what)
    assert (result.verdict, result.why[: len(why)]) == (verdict, why)


COMPLETE: list[tuple[Case, SeenRequests, int, bool]] = [
    (PLAIN, seen(record("a")), 1, False),
    (PLAIN, seen(record("a"), record("b")), 1, True),
    (FINAL, seen(record("b")), 1, False),
    (FINAL, seen(refused("a"), record("b")), 1, True),
]


@pytest.mark.parametrize(("case", "what", "rounds", "whole"), COMPLETE)
def test_waiting_ends_when_all_has_come_that_must(case: Case, what: SeenRequests, rounds: int, whole: bool) -> None:
    assert complete(case, what, rounds) is whole


def test_a_round_that_is_not_the_last_waits_for_a_request_alone() -> None:
    twice = Case(name="twice", says="", targets=2, rounds=2)
    assert complete(twice, seen(refused("a"), record("b")), 1)
    assert not complete(twice, seen(refused("a"), record("b"), record("b")), 2)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_every_case_makes_rules_for_its_gateways_alone(case: Case) -> None:
    rules = case.rules(dict.fromkeys(case.gateways, "token"))
    assert {rule.where for rule in rules} <= {*GATEWAYS, "oauth"}
    assert len(case.rules({})) == len(case.elsewhere)


def test_case_names_are_unlike_each_other() -> None:
    assert len({case.name for case in CASES}) == len(CASES)


def test_a_case_nobody_knows_is_refused_with_the_names_there_are() -> None:
    wrong: Any = CheckOrder(cases=("accept",))
    with pytest.raises(ValueError, match="no case accept; there are accepts, "):
        chosen(wrong)
    assert [case.name for case in chosen(CheckOrder(cases=("goaway", "accepts")))] == ["accepts", "goaway"]
