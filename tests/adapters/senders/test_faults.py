"""What goes wrong at a provider or on the way becomes the right outcome, and nothing is reported twice or lost."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.adapters.senders.bench import accepted, fresh, outcome, outcomes, script, to_android, to_ios, to_web
from tests.shows import shows
from waypost.channels.apns.sender import ApnsSender
from waypost.channels.fcm.sender import FcmSender
from waypost.channels.webpush.sender import WebPushSender
from waypost.domain.content import Content
from waypost.domain.delivery import Delivery, delivery_of
from waypost.domain.ids import format_id
from waypost.domain.message import message_of
from waypost.domain.outcome import Gone, Outcome, Refused, Taken, Throttled, Unanswered, Unreachable
from waypost.lab import Lab
from waypost.ports.sender import Sender

GATEWAYS = ("apns", "fcm", "webpush")
TO: dict[str, Callable[[Lab], Delivery]] = {"apns": to_ios, "fcm": to_android, "webpush": to_web}


@pytest.fixture(params=GATEWAYS)
def gateway(request: pytest.FixtureRequest) -> str:
    """Each provider in turn."""
    name: str = request.param
    return name


@pytest.fixture
def sender(gateway: str, apns: ApnsSender, fcm: FcmSender, webpush: WebPushSender) -> Sender:
    """The sender of the provider in turn."""
    senders: dict[str, Sender] = {"apns": apns, "fcm": fcm, "webpush": webpush}
    return senders[gateway]


# what the provider does, per gateway where its words differ -> what comes of it
ANSWERS: list[tuple[str, dict[str, Any], Outcome]] = [
    ("apns", {"status": 429, "reason": "TooManyRequests", "retry_after": 7}, Throttled("TooManyRequests", 7_000)),
    (
        "apns",
        {"status": 503, "reason": "ServiceUnavailable", "retry_after": 7},
        Unreachable("ServiceUnavailable", "Apple is not available", 7_000),
    ),
    ("apns", {"status": 500, "reason": "InternalServerError"}, Unanswered("InternalServerError", "Apple failed")),
    (
        "fcm",
        {"status": 429, "reason": "QUOTA_EXCEEDED", "retry_after": 7},
        Throttled("QUOTA_EXCEEDED", 7_000, whole=True),
    ),
    ("fcm", {"status": 429, "reason": "QUOTA_EXCEEDED"}, Throttled("QUOTA_EXCEEDED", 60_000, whole=True)),
    (
        "fcm",
        {"status": 503, "reason": "UNAVAILABLE", "retry_after": 70},
        Unanswered("UNAVAILABLE", "FCM is not available", 70_000),
    ),
    (
        "fcm",
        {"status": 502, "body": "<html>", "retry_after": 70},
        Unanswered("http_502", "FCM is not available", 70_000),
    ),
    ("webpush", {"status": 429, "retry_after": 7}, Throttled("http_429", 7_000, whole=True)),
    (
        "webpush",
        {"status": 503, "retry_after": 7},
        Unanswered("http_503", "the push service is not available", 7_000),
    ),
    ("webpush", {"status": 500}, Unanswered("http_500", "the push service failed")),
]


@shows("S1-75", "S1-125", "S4-19")
@pytest.mark.asyncio
@pytest.mark.parametrize(("where", "fault", "expected"), ANSWERS)
async def test_an_answer_of_failure(
    lab: Lab,
    apns: ApnsSender,
    fcm: FcmSender,
    webpush: WebPushSender,
    where: str,
    fault: dict[str, Any],
    expected: Outcome,
) -> None:
    senders: dict[str, Sender] = {"apns": apns, "fcm": fcm, "webpush": webpush}
    await lab.script(script({"where": where, "do": {"answer": fault}}))
    assert await outcome(senders[where], TO[where](lab)) == expected


@pytest.mark.asyncio
async def test_a_retry_after_date_counts_from_now(lab: Lab, fcm: FcmSender) -> None:
    fault = {"status": 503, "reason": "UNAVAILABLE", "retry_after_date_s": 90}
    await lab.script(script({"where": "fcm", "do": {"answer": fault}}))
    got = await outcome(fcm, to_android(lab))
    assert isinstance(got, Unanswered)
    assert got.wait_ms is not None
    assert 80_000 < got.wait_ms <= 90_000


@pytest.mark.asyncio
async def test_a_dead_token_is_gone(lab: Lab, gateway: str, sender: Sender) -> None:
    died_ms = 1_699_999_999_123
    await lab.script(script({"where": gateway, "do": {"gone": {"at_ms": died_ms}}}))
    got = await outcome(sender, TO[gateway](lab))
    assert isinstance(got, Gone)
    assert got.since == (died_ms if gateway == "apns" else None)


@pytest.mark.asyncio
async def test_a_web_subscription_is_gone_with_404_too(lab: Lab, webpush: WebPushSender) -> None:
    await lab.script(script({"where": "webpush", "do": {"gone": {"status": 404}}}))
    assert isinstance(await outcome(webpush, to_web(lab)), Gone)


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "goaway", [{"last_stream": "none"}, {"last_stream": "half", "hold_ms": 50}, {"graceful": True}]
)
async def test_what_a_goaway_left_unprocessed_is_sent_once_on_another_connection(
    lab: Lab, gateway: str, sender: Sender, goaway: dict[str, Any]
) -> None:
    assert isinstance(await outcome(sender, TO[gateway](lab)), Taken)
    await lab.script(script({"where": gateway, "match": {"times": 1}, "do": {"goaway": goaway}}))
    batch = [TO[gateway](lab) for _ in range(20)]
    assert all(isinstance(got, Taken) for got in await outcomes(sender, batch))
    assert len(accepted(lab, gateway)) == 21
    assert lab.records.counts[gateway].duplicates == 0


@pytest.mark.asyncio
async def test_a_refused_stream_is_sent_again_and_a_broken_one_is_not(lab: Lab, gateway: str, sender: Sender) -> None:
    refused_stream, internal_error = 7, 2
    await lab.script(script({"where": gateway, "match": {"times": 1}, "do": {"rst": {"code": refused_stream}}}))
    assert isinstance(await outcome(sender, TO[gateway](lab)), Taken)
    await lab.script(script({"where": gateway, "do": {"rst": {"code": internal_error, "accept": True}}}))
    assert isinstance(await outcome(sender, TO[gateway](lab)), Unanswered)
    assert lab.records.counts[gateway].duplicates == 0


@shows("S2-15")
@pytest.mark.asyncio
async def test_a_connection_that_drops_after_the_message_was_taken_is_unanswered(
    lab: Lab, gateway: str, sender: Sender
) -> None:
    await lab.script(script({"where": gateway, "match": {"times": 1}, "do": {"accept_then_drop": True}}))
    assert isinstance(await outcome(sender, TO[gateway](lab)), Unanswered)
    assert isinstance(await outcome(sender, TO[gateway](lab)), Taken)


@pytest.mark.asyncio
async def test_a_late_answer_counts(lab: Lab, gateway: str, sender: Sender, monkeypatch: pytest.MonkeyPatch) -> None:
    """A provider that takes longer than is expected has taken the message: nothing is given up, nothing sent twice."""
    assert isinstance(await outcome(sender, TO[gateway](lab)), Taken)  # so the next is sent at once
    monkeypatch.setattr("waypost.channels.push.patience.EXPECTED_S", 0.2)
    await lab.script(script({"where": gateway, "do": {"latency_ms": 700}}))
    assert all(isinstance(got, Taken) for got in await outcomes(sender, [TO[gateway](lab) for _ in range(5)]))
    assert lab.records.counts[gateway].duplicates == 0


@pytest.mark.asyncio
async def test_no_answer_in_time_is_unanswered(
    lab: Lab, gateway: str, sender: Sender, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert isinstance(await outcome(sender, TO[gateway](lab)), Taken)  # so the next is sent at once
    monkeypatch.setattr("waypost.channels.push.patience.EXPECTED_S", 0.5)
    monkeypatch.setattr("waypost.channels.push.patience.ANSWER_BY_S", 1.0)
    await lab.script(script({"where": gateway, "match": {"times": 1}, "do": {"black_hole": {}}}))
    got = await outcome(sender, TO[gateway](lab))
    assert isinstance(got, Unanswered)
    assert got.code == "timeout"


@shows("S4-19")
@pytest.mark.asyncio
async def test_a_provider_that_cannot_be_reached_has_provably_taken_nothing(
    lab: Lab, gateway: str, sender: Sender, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("waypost.channels.push.patience.EXPECTED_S", 2.0)
    cut, away = {"drop": True}, {"refuse_connections": True}
    await lab.script(script({"where": gateway, "do": cut}, {"where": gateway, "do": away}))
    # The first may still go out on a connection that is open; that one is cut then.
    await outcome(sender, TO[gateway](lab))
    got = await outcome(sender, TO[gateway](lab))
    assert isinstance(got, Unreachable)
    assert got.code == "not_sent"
    assert not accepted(lab, gateway)


@pytest.mark.asyncio
async def test_a_handshake_that_fails_is_unreachable_until_one_succeeds(lab: Lab, webpush: WebPushSender) -> None:
    await lab.script(script({"where": "webpush", "match": {"times": 1}, "do": {"tls_fail": True}}))
    got = await outcome(webpush, to_web(lab))
    assert isinstance(got, Unreachable)
    while isinstance(got, Unreachable):
        got = await outcome(webpush, to_web(lab))
    assert isinstance(got, Taken)


@pytest.mark.asyncio
async def test_a_payload_over_the_limit_is_refused_with_its_size_and_never_sent(
    lab: Lab, gateway: str, sender: Sender
) -> None:
    to = TO[gateway](lab)
    limit = sender.capabilities.payload_limit_bytes
    empty = sender.render(_with_body(to, "")).size_bytes
    fits, over = _with_body(to, "x" * (limit - empty)), _with_body(to, "x" * (limit - empty + 7))
    assert sender.render(over).refused == f"{limit + 7} bytes, limit {limit}"
    taken, refused = await outcomes(sender, [fits, over])
    assert isinstance(taken, Taken)
    assert refused == Refused("payload_too_large", f"{limit + 7} bytes, limit {limit}")
    assert len(accepted(lab, gateway)) == 1
    assert lab.records.counts[gateway].refused == 0


@pytest.mark.asyncio
async def test_in_a_storm_each_delivery_is_reported_once_and_what_was_taken_arrived_once(
    lab: Lab, gateway: str, sender: Sender
) -> None:
    """``outcomes`` fails on a second report; the lab counts copies; Unreachable means that it never arrived.

    Few are under way at once: a connection that is cut takes with it whatever it has, and then how many that is, and
    how many are taken in the end, would depend on how fast the machine is.
    """

    def some(share: float, do: dict[str, Any]) -> dict[str, Any]:
        return {"where": gateway, "match": {"probability": share}, "do": do}

    await lab.script(
        script(
            some(0.2, {"latency_ms": 5}),
            some(0.02, {"goaway": {"last_stream": "half", "hold_ms": 10}}),
            some(0.01, {"drop": True}),
            some(0.01, {"accept_then_drop": True}),
            some(0.05, {"rst": {"code": 7}}),
            some(0.05, {"answer": {"status": 500, "accept": True}}),
            some(0.05, {"answer": {"status": 429}}),
        )
    )
    batch = [TO[gateway](lab) for _ in range(300)]
    got = [each for n in range(0, len(batch), 10) for each in await outcomes(sender, batch[n : n + 10])]
    arrived = {record.notification_id for record in accepted(lab, gateway)}
    for one, came_to in zip(batch, got, strict=True):
        here = format_id(one.id) in arrived
        assert here or not isinstance(came_to, Taken)
        assert not here or isinstance(came_to, Taken | Unanswered)
    assert lab.records.counts[gateway].duplicates == 0
    assert sum(isinstance(came_to, Taken) for came_to in got) > 100


@pytest.mark.asyncio
async def test_stopping_reports_what_is_still_in_flight(lab: Lab, gateway: str, sender: Sender) -> None:
    assert isinstance(await outcome(sender, TO[gateway](lab)), Taken)
    await lab.script(script({"where": gateway, "do": {"black_hole": {}}}))
    reported: list[Outcome] = []
    sender.send([TO[gateway](lab) for _ in range(5)], lambda _, got: reported.append(got))
    await sender.stop(0.2)
    assert len(reported) == 5
    assert not any(isinstance(got, Taken) for got in reported)


def _with_body(to: Delivery, body: str) -> Delivery:
    what = fresh(Content(title="T", body=body))
    return delivery_of(what, to.n, to.credential, to.address, message_of(what), to.attempt)
