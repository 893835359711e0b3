"""Senders of ours pass the contract that those of other packages are held to.

Those of APNs, FCM and Web Push, whose gateways are the lab's own, are held to more in ``test_faults``.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from waypost.channels.sms import errors
from waypost.contract import SenderContract
from waypost.domain.outcome import Outcome, Taken, Unanswered, Unreachable
from waypost.domain.time import Instant
from waypost.http2 import Result


@pytest.fixture(autouse=True)
def _prompt(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only where nothing answers: a busy machine needs its time."""
    if "silence" not in request.node.name:
        return
    for module in ("waypost.channels.push.patience", "waypost.channels.webhook.sender"):
        monkeypatch.setattr(f"{module}.ANSWER_BY_S", 2.0)
    monkeypatch.setattr("waypost.channels.push.patience.EXPECTED_S", 1.5)
    monkeypatch.setattr("waypost.channels.webhook.sender.WRITTEN_BY_S", 1.5)


class TestSms(SenderContract):
    channel = "sms"


class TestUnifiedPush(SenderContract):
    channel = "unifiedpush"


class TestWebhook(SenderContract):
    channel = "webhook"


@pytest.mark.parametrize(
    ("wrong", "promise"),
    [
        (Taken(), SenderContract.test_a_dead_token_is_gone),
        (Taken(), SenderContract.test_who_is_asked_to_wait_says_for_how_long),
        (Taken(), SenderContract.test_a_provider_that_fails_is_asked_again),
        (Unreachable("lost", ""), SenderContract.test_what_was_taken_before_the_connection_broke_is_unanswered),
        (Unanswered("lost", ""), SenderContract.test_a_provider_that_cannot_be_reached_took_nothing),
    ],
)
def test_a_sender_that_says_something_else_is_found_out(
    wrong: Outcome, promise: Callable[[SenderContract], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is right as long as Twilio takes what it is given, and makes the same of everything else."""

    def outcome_of(result: Result, now: Instant) -> Outcome:
        right = errors.outcome_of(result, now)
        return right if isinstance(right, Taken) else wrong

    monkeypatch.setattr("waypost.channels.sms.sender.outcome_of", outcome_of)
    with pytest.raises(AssertionError):
        promise(TestSms())
