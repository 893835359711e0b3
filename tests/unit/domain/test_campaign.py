"""Campaigns, the pure part: which orders are taken in which state, and when a ramp goes on or stops."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from tests.unit.domain.made import NOW
from waypost.domain.bulk import JobId
from waypost.domain.campaign import (
    ENDED_LEAST,
    Campaign,
    CampaignOrder,
    CampaignState,
    CampaignSubmission,
    Counted,
    Step,
    counted,
    next_step,
    ordered,
)
from waypost.domain.forecast import SAMPLE, Sample, turn_of
from waypost.domain.ids import AppId, CallerId
from waypost.domain.status import NotificationStatus
from waypost.domain.time import SECOND_MS, later

_S, _O = CampaignState, CampaignOrder


def made(jobs: int = 1, **fields: Any) -> Campaign:
    """A campaign that runs, with as many *jobs*."""
    asked = msgspec.convert({"notification": {"title": "Sale"}, "upload": True} | fields, CampaignSubmission)
    drafted = Campaign(AppId("demo"), "spring", asked, CallerId("ann"), NOW, NOW)
    return replace(drafted, state=_S.RUNNING, running_since=NOW, jobs=(JobId(b"j" * 16),) * jobs)


REFUSED = {
    _S.DRAFT: "begin pause resume finish",
    _S.APPROVED: "begin pause resume finish",
    _S.SCHEDULED: "change approve pause resume finish",
    _S.RUNNING: "change approve schedule begin",
    _S.PAUSED: "change approve schedule begin finish",
    _S.DONE: "change approve schedule begin pause resume cancel finish",
    _S.CANCELLED: "change approve schedule begin pause resume finish",
}


@pytest.mark.parametrize("state", CampaignState)
def test_each_state_refuses_what_makes_no_sense_in_it(state: CampaignState) -> None:
    """What was approved, scheduled or begun cannot be changed under whoever agreed to it."""
    before = replace(made(), state=state)
    assert {order for order in CampaignOrder if ordered(before, order, NOW) is None} == set(REFUSED[state].split())


def test_an_order_that_was_carried_out_may_be_repeated() -> None:
    paused = ordered(made(), _O.PAUSE, later(NOW, 5_000))
    assert paused is not None and (paused.state, paused.ran_ms, paused.running_since) == (_S.PAUSED, 5_000, None)
    assert ordered(paused, _O.PAUSE, later(NOW, 9_000)) is paused
    resumed = ordered(paused, _O.RESUME, later(NOW, 60_000))
    assert resumed is not None and resumed.ran_until(later(NOW, 61_000)) == 6_000


RAMP = {"steps": [1, 10], "hold": 60, "max_failed": 0.1}
OVER = 60 * SECOND_MS
STEPS: dict[str, tuple[int, Counted, bool, int, Step]] = {
    "while it is told": (1, Counted(0, 50), False, OVER, Step.WAIT),
    "before its time": (1, Counted(0, 50), True, OVER - 1, Step.WAIT),
    "after its time": (1, Counted(0, 50), True, OVER, Step.NEXT),
    "while nobody is through": (1, Counted(0, 0), True, OVER, Step.WAIT),
    "as many failures as are allowed": (1, Counted(5, 50), True, OVER, Step.NEXT),
    "more failures": (1, Counted(6, 50), False, 0, Step.STOP),
    "a few that failed, while it is told": (1, Counted(ENDED_LEAST - 1, ENDED_LEAST - 1), False, 0, Step.WAIT),
    "a few that failed, after its time": (1, Counted(2, 3), True, OVER, Step.STOP),
    "the last step": (3, Counted(0, 50), True, 10 * OVER, Step.WAIT),
    "the last step, with failures": (3, Counted(30, 50), False, 0, Step.STOP),
}


@pytest.mark.parametrize("name", STEPS)
def test_a_ramp_goes_on_waits_or_stops(name: str) -> None:
    jobs, so_far, told, passed, expected = STEPS[name]
    campaign = replace(made(jobs, ramp=RAMP), told_at=NOW if told else None)
    assert next_step(campaign, so_far, told=told, ended=False, now=later(NOW, passed)) is expected


def test_a_step_without_users_is_passed_and_the_last_one_finishes() -> None:
    campaign = replace(made(1, ramp=RAMP), told_at=NOW)
    assert next_step(campaign, Counted(), told=True, ended=True, now=later(NOW, OVER)) is Step.NEXT
    last = replace(made(3, ramp=RAMP), told_at=NOW)
    assert next_step(last, Counted(0, 9), told=True, ended=True, now=NOW) is Step.FINISH


def test_what_was_forgiven_counts_no_more() -> None:
    campaign = replace(made(2, ramp=RAMP), told_at=NOW, forgiven=Counted(40, 50))
    assert next_step(campaign, Counted(40, 90), told=True, ended=False, now=later(NOW, OVER)) is Step.NEXT
    assert next_step(campaign, Counted(60, 90), told=True, ended=False, now=later(NOW, OVER)) is Step.STOP


def test_what_was_never_asked_of_a_provider_is_no_failure() -> None:
    counts = {
        NotificationStatus.SENT: 5,
        NotificationStatus.PARTIAL: 1,
        NotificationStatus.FAILED: 2,
        NotificationStatus.SUPPRESSED: 50,
        NotificationStatus.NO_TARGETS: 9,
        NotificationStatus.EXPIRED: 3,
        NotificationStatus.PENDING: 4,
    }
    assert counted(counts) == Counted(2, 8)


def test_a_sample_of_many_is_fair_and_bounded() -> None:
    """Everybody of a few; of 50,000 some thousands, with the same chance for each, who opted out apart."""
    few, many = Sample(), Sample()
    few.add((f"user-{n}", n == 7) for n in range(100))
    assert (few.recipients, few.left_out, len(few.chosen)) == (99, 1, 99)
    for page in range(10):
        many.add((f"user-{page}-{n:04}", False) for n in range(5_000))
    assert (many.recipients, SAMPLE / 2 < len(many.chosen) <= 2 * SAMPLE) == (50_000, True)
    assert len(many.chosen) / many.share == pytest.approx(50_000, rel=0.1)
    of_first_page = sum(user.startswith("user-0-") for user in many.chosen)
    assert of_first_page / len(many.chosen) == pytest.approx(0.1, abs=0.03)


def test_the_turn_of_a_user_follows_from_pace_and_ramp() -> None:
    """At 100 a second, the middle one of 1,000 has their turn after 5 s, and later steps after their waits."""
    steady = made(rate=100)
    assert turn_of(steady, 1_000, "ann", 50, 100, NOW) == later(NOW, 5_000)
    assert turn_of(made(), 1_000, "ann", 50, 100, NOW) == NOW
    ramped = made(rate=100, ramp=RAMP)
    turns = {
        next(n for n, part in enumerate(ramped.parts) if part.has(user)): turn_of(ramped, 1_000, user, 0, 1, NOW)
        for user in (f"user-{n}" for n in range(500))
    }
    assert turns == {0: NOW, 1: later(NOW, OVER + 100), 2: later(NOW, 2 * OVER + 1_000)}
