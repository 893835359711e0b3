"""Every answer of APNs: its outcome, what is decided from it, what is stored, and what the operator's page says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.shows import shows
from tests.tables import AddRow
from tests.unit.adapters.deliveries import IOS_TOKEN, NOW, answer, delivery
from tests.unit.adapters.error_rows import add_error_row, reach_of, rest_after, rows_of_page
from tests.unit.adapters.noted import Noted
from waypost.channels.apns.channels import REASONS as CHANNEL_REASONS
from waypost.channels.apns.errors import REASONS, STATUSES, outcome_of
from waypost.channels.apns.settings import ApnsSettings
from waypost.channels.push.watch import CredentialWatch
from waypost.domain.channel import Channel
from waypost.domain.delivery import FailureClass, Receipt
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
    outcome_name,
)
from waypost.domain.retry import RetryRules
from waypost.domain.settlement import Again, Change, Dead, Forget, apply
from waypost.domain.status import DeliveryStatus
from waypost.domain.time import Instant
from waypost.http2 import Lost, Result, Unknown, Unsent
from waypost.pipeline.settle import change_of
from waypost.telemetry.events import Event

DEAD = ("Unregistered", "ExpiredToken")
TO_DEVICE = delivery(Platform("ios"), IOS_TOKEN)

# Apple's table of reasons, with the outcome of each; one row, one reason.
ROWS: list[tuple[int, str, type[Outcome]]] = [
    (400, "BadCollapseId", Refused),
    (400, "BadDeviceToken", Refused),
    (400, "BadExpirationDate", Refused),
    (400, "BadMessageId", Refused),
    (400, "BadPriority", Refused),
    (400, "BadTopic", CredentialRejected),
    (400, "DeviceTokenNotForTopic", Refused),
    (400, "DuplicateHeaders", Refused),
    (400, "IdleTimeout", Unreachable),
    (400, "InvalidPushType", Refused),
    (400, "MissingDeviceToken", Refused),
    (400, "MissingTopic", CredentialRejected),
    (400, "PayloadEmpty", Refused),
    (400, "TopicDisallowed", CredentialRejected),
    (403, "BadCertificate", CredentialRejected),
    (403, "BadCertificateEnvironment", CredentialRejected),
    (403, "ExpiredProviderToken", CredentialRejected),
    (403, "Forbidden", CredentialRejected),
    (403, "InvalidProviderToken", CredentialRejected),
    (403, "MissingProviderToken", CredentialRejected),
    (403, "UnrelatedKeyIdInToken", Unreachable),
    (403, "BadEnvironmentKeyIdInToken", CredentialRejected),
    (403, "BadEnvironmentKeyInToken", CredentialRejected),
    (404, "BadPath", Refused),
    (405, "MethodNotAllowed", Refused),
    (410, "ExpiredToken", Gone),
    (410, "Unregistered", Gone),
    (413, "PayloadTooLarge", Refused),
    (429, "TooManyProviderTokenUpdates", Throttled),
    (429, "TooManyRequests", Throttled),
    (500, "InternalServerError", Unanswered),
    (503, "ServiceUnavailable", Unreachable),
    (503, "Shutdown", Unreachable),
    (400, "http_400", Refused),
    (403, "http_403", CredentialRejected),
    (404, "http_404", Refused),
    (405, "http_405", Refused),
    (410, "http_410", Gone),
    (413, "http_413", Refused),
    (429, "http_429", Throttled),
    (500, "http_500", Unanswered),
    (502, "http_502", Unanswered),
    (503, "http_503", Unanswered),
    (504, "http_504", Unanswered),
]
TABLE = REASONS | STATUSES
"""The second half is for answers without a word."""


def read(result: Result, dead_token_codes: tuple[str, ...] = DEAD) -> Outcome:
    return outcome_of(result, TO_DEVICE, dead_token_codes, NOW)


@pytest.mark.parametrize(("status", "reason", "outcome"), ROWS)
def test_each_documented_reason_has_its_outcome_and_keeps_apples_word(
    status: int, reason: str, outcome: type[Outcome]
) -> None:
    got = read(answer(status, b'{"reason":"%s"}' % reason.encode()))
    assert isinstance(got, outcome)
    assert not isinstance(got, Taken)
    assert got.code == reason


def test_the_rows_above_are_the_whole_table() -> None:
    assert {reason for _, reason, _ in ROWS} == set(TABLE)


def change(status: int, reason: str) -> Change:
    """What the store is told of the first attempt."""
    outcome = read(answer(status, b'{"reason":"%s"}' % reason.encode()))
    return change_of(TO_DEVICE, outcome, RetryRules(), NOW, 0.0, NOW, rest_after(outcome))


def stored(status: int, reason: str) -> Receipt:
    """The receipt after the first attempt was answered so."""
    device_id, notification_id = TO_DEVICE.device.device_id, TO_DEVICE.id
    before = Receipt(notification_id, 0, device_id, Channel("apns"), DeliveryStatus.PENDING, due_at=NOW)
    after = apply(before, change(status, reason))
    assert after is not None
    return after


@pytest.mark.parametrize(("status", "reason", "outcome"), ROWS)
def test_each_reason_is_settled_and_stored_as_its_outcome_says(
    status: int, reason: str, outcome: type[Outcome], table: AddRow
) -> None:
    receipt = stored(status, reason)
    got = read(answer(status, b'{"reason":"%s"}' % reason.encode()))
    add_error_row(table, "apns", status, got, change(status, reason).settlement, receipt)
    assert receipt.code == reason
    assert [(made.status, made.code) for made in receipt.attempts] == [(outcome_name(outcome), reason)]
    match change(status, reason).settlement:
        case Forget():
            assert outcome is Gone
            assert (receipt.status, receipt.reason) == (DeliveryStatus.FAILED, "gone")
        case Dead():
            assert outcome is Refused
            assert (receipt.status, receipt.reason) == (DeliveryStatus.FAILED, TABLE[reason][1])
            assert receipt.failure_class is FailureClass.TERMINAL
        case Again(spends_attempt=spends_attempt):
            assert outcome in (CredentialRejected, Throttled, Unreachable, Unanswered)
            assert not (spends_attempt and outcome is CredentialRejected and reason != WITHOUT_A_WORD)
            assert receipt.status is DeliveryStatus.PENDING
            assert (receipt.retries, receipt.throttles) == ((1, 0) if spends_attempt else (0, 1))
        case other:
            raise AssertionError(other)


@pytest.mark.parametrize(("status", "reason", "outcome"), ROWS)
def test_the_operator_is_told_of_what_only_an_operator_can_mend(
    status: int, reason: str, outcome: type[Outcome]
) -> None:
    noted = Noted()
    watch = CredentialWatch(TO_DEVICE.credential, noted, lambda: 0)
    for _ in range(2):
        watch.heed(read(answer(status, b'{"reason":"%s"}' % reason.encode())))
    told = {"credential": "demo/apns", "code": reason, "why": TABLE[reason][1]}
    of_all = outcome is CredentialRejected and reason not in (*OF_A_TOPIC, WITHOUT_A_WORD)
    assert noted.events == ([(Event.CREDENTIAL_DENIED, told)] if of_all else [])
    assert watch.health().ok is not of_all


OF_A_TOPIC = ("BadTopic", "MissingTopic", "TopicDisallowed")
WITHOUT_A_WORD = "http_403"
"""Nothing says that it is meant for more than the one device."""


def test_what_is_said_of_the_topic_reaches_no_other() -> None:
    """The key may push to the others; everything else that Apple refuses us for is said of the key or certificate."""
    reaches = {
        reason: got.reach
        for status, reason, outcome in ROWS
        if isinstance(got := read(answer(status, b'{"reason":"%s"}' % reason.encode())), CredentialRejected)
    }
    assert {reason for reason, reach in reaches.items() if reach is Reach.SCOPE} == set(OF_A_TOPIC)
    assert {reason for reason, reach in reaches.items() if reach is Reach.DEVICE} == {WITHOUT_A_WORD}


PAGE = Path(__file__).parents[4] / "docs" / "providers" / "apns.md"


def test_the_operators_page_has_the_same_table() -> None:
    table = PAGE.read_text().partition("## What Apple answers")[2]
    answers = {reason: read(answer(status, b'{"reason":"%s"}' % reason.encode())) for status, reason, _ in ROWS}
    assert {reason: told[:3] for reason, told in rows_of_page(table).items()} == {
        reason: (f"`{outcome_name(type(got))}`", reach_of(got, "topic"), TABLE[reason][1])
        for reason, got in answers.items()
    }


def test_the_operators_page_has_the_refusals_of_channels_too() -> None:
    told = re.findall(r"^\| `([A-Z]\w+)` \| ([^|]+) \|$", PAGE.read_text(), re.MULTILINE)
    assert dict(told) == CHANNEL_REASONS


def test_success_names_apples_id() -> None:
    assert read(answer(200, apns_id="EC1BF194")) == Taken("EC1BF194")


def test_a_dead_token_carries_the_time_of_its_death() -> None:
    assert read(answer(410, b'{"reason":"Unregistered","timestamp":1799999999123}')) == Gone(
        "Unregistered", Instant(1_799_999_999_123)
    )


@shows("S3-58")
def test_only_the_listed_codes_forget_a_token() -> None:
    assert ApnsSettings(key_file="k", key_id="ABCDE12345", team_id="FGHIJ67890", topic="x").dead_token_codes == DEAD
    body = b'{"reason":"BadDeviceToken"}'
    assert isinstance(read(answer(400, body)), Refused)
    assert read(answer(400, body), (*DEAD, "BadDeviceToken")) == Gone("BadDeviceToken")
    assert isinstance(read(answer(410, b'{"reason":"ExpiredToken"}'), ("Unregistered",)), Refused)


@shows("S3-58")
@pytest.mark.parametrize(
    ("status", "reason"), [(400, "BadDeviceToken"), (410, "Unregistered"), (400, "DeviceTokenNotForTopic")]
)
def test_each_code_that_speaks_of_a_token_can_be_named_to_forget_it(status: int, reason: str) -> None:
    """The three of requirements S3-T3, under the settings that name them."""
    named = ("BadDeviceToken", "Unregistered", "DeviceTokenNotForTopic")
    assert read(answer(status, b'{"reason":"%s"}' % reason.encode()), named) == Gone(reason)


@pytest.mark.parametrize(
    ("status", "body", "code"),
    [(400, b'{"reason":"SomethingNew"}', "SomethingNew"), (502, b"<html>", "http_502"), (418, b"\xff", "http_418")],
)
def test_an_unknown_answer_is_retried_like_no_answer(status: int, body: bytes, code: str) -> None:
    got = read(answer(status, body))
    assert isinstance(got, Unanswered)
    assert got.code == code


@pytest.mark.parametrize(
    ("status", "reason"), [(429, "TooManyRequests"), (503, "ServiceUnavailable"), (503, "Shutdown")]
)
def test_retry_after_is_honoured(status: int, reason: str) -> None:
    got = read(answer(status, b'{"reason":"%s"}' % reason.encode(), retry_after="17"))
    assert isinstance(got, Throttled | Unreachable)
    assert got.wait_ms == 17_000


@shows("S1-76")
def test_a_shutdown_waits_five_to_ten_seconds() -> None:
    got = read(answer(503, b'{"reason":"Shutdown"}'))
    assert isinstance(got, Unreachable)
    assert got.wait_ms is not None
    assert 5_000 <= got.wait_ms <= 10_000


def test_not_written_is_unreachable_and_no_answer_is_unanswered() -> None:
    assert read(Unsent("queue full")) == Unreachable("not_sent", "queue full")
    assert read(Unknown("no answer", Lost.TIMEOUT)) == Unanswered("timeout", "no answer")
    assert read(Unknown("RST_STREAM", Lost.RESET)) == Unanswered("reset", "RST_STREAM")
