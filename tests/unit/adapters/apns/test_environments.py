"""Which environment knows a token, and when so many are unknown that none is forgotten."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.contract.clock import StoppedClock
from tests.unit.adapters.noted import Noted
from waypost.channels.apns.environments import FEWEST, RECENT, ForeignTokens, Mistrust
from waypost.channels.apns.tally import FRESH_S, Tally
from waypost.channels.apns.verdicts import Trial, judged
from waypost.domain.channel import Channel
from waypost.domain.credential import CredentialId
from waypost.domain.ids import AppId
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
from waypost.domain.time import Instant
from waypost.telemetry.events import Event

DEMO = CredentialId(AppId("demo"), Channel("apns"))
UNKNOWN = Refused("BadDeviceToken", "the token is malformed or of the other environment")


def test_a_foreign_token_is_known_again_until_it_is_taken_at_home() -> None:
    foreign = ForeignTokens()
    assert "a" not in foreign
    foreign.learn("a", foreign=True)
    assert "a" in foreign
    foreign.learn("a", foreign=False)
    assert "a" not in foreign


def test_the_memory_of_foreign_tokens_is_bounded_and_forgets_what_was_not_used() -> None:
    foreign = ForeignTokens(room=2)
    for token in ("a", "b"):
        foreign.learn(token, foreign=True)
    assert "a" in foreign
    foreign.learn("c", foreign=True)
    assert ("a" in foreign, "b" in foreign, "c" in foreign) == (True, False, True)
    assert len(foreign) == 2


def test_a_spike_of_unknown_tokens_is_told_once_and_its_end_once() -> None:
    noted = Noted()
    mistrust = Mistrust(0.25, Tally(None, 0, StoppedClock()), DEMO, noted)
    for _ in range(FEWEST - 1):
        mistrust.heed(unknown=True)
    assert noted.events == []
    mistrust.heed(unknown=True)
    for _ in range(10):
        mistrust.heed(unknown=True)
    assert [event for event, _ in noted.events] == [Event.TOKENS_SUSPECT]
    assert noted.events[0][1] == {"credential": str(DEMO), "percent": 100, "answers": FEWEST}
    assert mistrust.holds
    for _ in range(RECENT):
        mistrust.heed(unknown=False)
    assert [event for event, _ in noted.events] == [Event.TOKENS_SUSPECT, Event.TOKENS_TRUSTED]


def test_a_few_unknown_tokens_are_no_spike() -> None:
    mistrust = Mistrust(0.25, Tally(None, 0, StoppedClock()), DEMO, Noted())
    for n in range(10 * RECENT):
        mistrust.heed(unknown=n % 5 == 4)
        assert not mistrust.holds


def test_the_workers_of_a_machine_count_together(tmp_path: Path) -> None:
    """Four of them forget no more tokens of a wrong setting than one would."""
    clock, noted = StoppedClock(), Noted()
    workers = [Mistrust(0.25, Tally(tmp_path / "tally", slot, clock), DEMO, noted) for slot in range(4)]
    forgotten = 0
    for n in range(40):
        worker = workers[n % 4]
        worker.heed(unknown=True)
        forgotten += not worker.holds
    assert forgotten == FEWEST - 1
    assert all(worker.holds for worker in workers)


def test_a_worker_that_is_gone_counts_no_more(tmp_path: Path) -> None:
    clock = StoppedClock()
    gone = Mistrust(0.25, Tally(tmp_path / "tally", 1, clock), DEMO, Noted())
    for _ in range(RECENT):
        gone.heed(unknown=True)
    mistrust = Mistrust(0.25, Tally(tmp_path / "tally", 0, clock), DEMO, Noted())
    mistrust.heed(unknown=True)
    assert mistrust.holds
    clock.advance(int(FRESH_S * 1000))
    mistrust.heed(unknown=False)
    mistrust = Mistrust(0.25, Tally(tmp_path / "tally", 0, clock), DEMO, Noted())
    mistrust.heed(unknown=True)
    assert not mistrust.holds, "its successor begins anew"


HOME, TURNED_AWAY, TURNED_HOME = Trial(False, False, False), Trial(True, True, False), Trial(True, False, False)
AWAY = Trial(False, True, False)
SUSPECT, SUSPECT_TURNED = Trial(False, False, True), Trial(True, True, True)


@pytest.mark.parametrize(
    ("outcome", "trial", "kind"),
    [
        (Taken("x"), HOME, Taken),
        (Taken("x"), TURNED_AWAY, Taken),
        (UNKNOWN, HOME, Refused),
        (UNKNOWN, TURNED_AWAY, Gone),
        (UNKNOWN, TURNED_HOME, Gone),
        (UNKNOWN, SUSPECT, Refused),
        (UNKNOWN, SUSPECT_TURNED, Refused),
        (Gone("BadDeviceToken"), HOME, Gone),
        (Gone("BadDeviceToken"), SUSPECT, Refused),
        (Gone("DeviceTokenNotForTopic"), HOME, Gone),
        (Gone("DeviceTokenNotForTopic"), SUSPECT, Refused),
        (Gone("Unregistered", Instant(1)), SUSPECT, Gone),
        (CredentialRejected("InvalidProviderToken", "why"), HOME, CredentialRejected),
        (CredentialRejected("InvalidProviderToken", "why"), TURNED_HOME, CredentialRejected),
        (CredentialRejected("BadEnvironmentKeyInToken", "why"), TURNED_AWAY, Refused),
        (Unreachable("not_sent", "why"), HOME, Unreachable),
        (Unreachable("not_sent", "why"), TURNED_AWAY, Throttled),
        (Unreachable("not_sent", "why"), AWAY, Throttled),
        (Unanswered("timeout", "why"), TURNED_AWAY, Unanswered),
    ],
)
def test_an_answer_is_judged_by_where_else_the_token_was_tried(
    outcome: Outcome, trial: Trial, kind: type[Outcome]
) -> None:
    assert type(judged(outcome, trial)) is kind


@pytest.mark.parametrize(
    ("trial", "reach"), [(HOME, Reach.CREDENTIAL), (TURNED_HOME, Reach.CREDENTIAL), (AWAY, Reach.SCOPE)]
)
def test_a_refusal_reaches_as_far_as_the_environment_that_said_it(trial: Trial, reach: Reach) -> None:
    got = judged(CredentialRejected("Forbidden", "why"), trial)
    assert isinstance(got, CredentialRejected)
    assert got.reach is reach
