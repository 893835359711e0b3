"""The notifications service's table of codes (requirements S0-T1), on what the sender reports."""

from __future__ import annotations

import msgspec
import pytest

from tests.shows import shows
from tests.unit.adapters.deliveries import ANDROID_TOKEN, delivery
from tests.unit.adapters.error_rows import rest_after
from waypost.channels.fcm.errors import outcome_of
from waypost.channels.fcm.settings import FcmSettings
from waypost.compat.jobs_stream.actions import TokenAction, action_of, fault_of
from waypost.compat.jobs_stream.tokens import ANY
from waypost.config.drop_in import drop_in
from waypost.domain.delivery import FailureClass
from waypost.domain.retry import POLICIES, RetryRules
from waypost.domain.settlement import Change, Dead, Expired, Parked, Suppressed, Unstarted
from waypost.domain.time import Instant
from waypost.http2 import Answer
from waypost.pipeline.settle import change_of

NOW = Instant(1_800_000_000_000)
SETTINGS: FcmSettings = drop_in(
    {"REDIS_URL": "redis://r", "DATABASE_URL": "postgres://p", "GOOGLE_APPLICATION_CREDENTIALS": "f"}
).fcm


def change(status: int, code: str) -> Change:
    """What becomes of one token when FCM answers this."""
    detail = {"@type": "type.googleapis.com/google.firebase.fcm.v1.FcmError", "errorCode": code}
    body = msgspec.json.encode({"error": {"status": code, "details": [detail]}})
    tried = delivery(ANY, ANDROID_TOKEN)
    outcome = outcome_of(Answer(status, (), body), tried, NOW, SETTINGS.token_rules())
    return change_of(tried, outcome, RetryRules(POLICIES["s0_stream"]), NOW, 0.5, NOW, rest_after(outcome))


@shows("S0-14", "S0-15", "S0-35")
@pytest.mark.parametrize(
    ("status", "code", "action", "alerts"),
    [
        (200, "", TokenAction.SENT, False),
        (404, "UNREGISTERED", TokenAction.REMOVE, False),
        (400, "INVALID_ARGUMENT", TokenAction.REMOVE, False),
        (403, "SENDER_ID_MISMATCH", TokenAction.REMOVE, False),
        (503, "UNAVAILABLE", TokenAction.RETRY, False),
        (500, "INTERNAL", TokenAction.RETRY, False),
        (500, "UNSPECIFIED_ERROR", TokenAction.RETRY, False),
        (429, "QUOTA_EXCEEDED", TokenAction.WAIT, False),
        (401, "THIRD_PARTY_AUTH_ERROR", TokenAction.FATAL, True),
        (401, "UNAUTHENTICATED", TokenAction.WAIT, True),
        (404, "NOT_FOUND", TokenAction.RETRY, False),
        (418, "NEVER_HEARD_OF", TokenAction.RETRY, False),
    ],
)
def test_each_code_has_its_action(status: int, code: str, action: TokenAction, alerts: bool) -> None:
    """A retry keeps the entry pending, and so does a wait; what FCM may be told of later costs no token."""
    made = change(status, code)
    assert action_of(made.settlement) is action
    assert fault_of(made) == (code if alerts else None)


@pytest.mark.parametrize(
    ("settlement", "action"),
    [
        (Dead("payload_too_large", "4097 bytes", FailureClass.TERMINAL, letter=False), TokenAction.FAILED),
        (Dead("unrecorded", "its outcome could not be written", FailureClass.TERMINAL, letter=True), TokenAction.RETRY),
        (Suppressed("device_gone"), TokenAction.FAILED),
        (Expired(), TokenAction.FAILED),
        (Parked("breaker:x", NOW), TokenAction.WAIT),
        (Unstarted(), TokenAction.WAIT),
    ],
)
def test_what_was_decided_without_fcm(settlement: Dead | Suppressed | Expired | Parked, action: TokenAction) -> None:
    assert action_of(settlement) is action
