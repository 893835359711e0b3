"""Subscriptions come from outside: where they may point, whose key they know, and how many services are open."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest
import pytest_asyncio
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from msgspec.structs import replace

from tests.adapters.senders.bench import SystemClock, accepted, fresh, outcome, outcomes, to_web
from tests.unit.adapters.deliveries import delivery
from waypost.channels.push.services import PushService
from waypost.channels.webpush.errors import outcome_of
from waypost.channels.webpush.sender import WebPushSender
from waypost.channels.webpush.settings import KNOWN_SERVICES, WebPushSettings
from waypost.domain.credential import CredentialId
from waypost.domain.delivery import Delivery
from waypost.domain.device import Platform, SubscriptionKeys
from waypost.domain.ids import AppId
from waypost.domain.outcome import Outcome, Refused, Taken, Unreachable
from waypost.lab import Lab
from waypost.telemetry.sink import Silent

DEMO = AppId("demo")


@pytest_asyncio.fixture
async def surprises() -> list[object]:
    """The errors that nobody foresaw, as the event loop hears of them."""
    heard: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: heard.append(context.get("exception")))
    return heard


@pytest.mark.asyncio
async def test_an_endpoint_elsewhere_is_refused_and_nothing_connects(lab: Lab, webpush: WebPushSender) -> None:
    one = to_web(lab)
    elsewhere = _at(one, one.device.token.replace("127.0.0.1", "localhost"))
    got = await outcome(webpush, elsewhere)
    assert isinstance(got, Refused)
    assert got.code == "endpoint_not_allowed"
    assert "localhost" not in got.why
    assert webpush.render(elsewhere).refused == got.why
    assert webpush.render(one).refused is None
    assert lab.records.counts["webpush"].connections_opened == 0


@pytest.mark.asyncio
async def test_a_subscription_stored_before_that_points_at_an_api_is_refused_and_nothing_connects(
    lab: Lab, webpush_settings: WebPushSettings
) -> None:
    """Registered by a version that still took it."""
    settings = msgspec.structs.replace(webpush_settings, allow_endpoints=KNOWN_SERVICES)
    sender = WebPushSender(CredentialId.of(DEMO, "webpush"), settings, clock=SystemClock(), telemetry=Silent())
    await sender.start()
    for url in ("https://api.push.apple.com/3/device/00", "https://fcm.googleapis.com/v1/projects/x/messages:send"):
        got = await outcome(sender, _at(to_web(lab), url))
        assert isinstance(got, Refused)
        assert got.code == "endpoint_not_allowed"
    await sender.stop(1)


@pytest.mark.asyncio
async def test_a_subscription_without_good_keys_is_refused(lab: Lab, webpush: WebPushSender) -> None:
    one = to_web(lab)
    assert one.device.keys is not None
    without = delivery(Platform("web"), one.device.token, fresh())
    off_the_curve = delivery(
        Platform("web"), one.device.token, fresh(), keys=SubscriptionKeys(p256dh=b"\x04" + b"\x01" * 64, auth=bytes(16))
    )
    for got in await outcomes(webpush, [without, off_the_curve]):
        assert isinstance(got, Refused)
        assert got.code == "invalid_subscription"


@pytest.mark.asyncio
@pytest.mark.parametrize("service", ["apple", "chrome"])
async def test_a_subscription_of_another_key_is_refused_alone(lab: Lab, webpush: WebPushSender, service: str) -> None:
    other = ec.generate_private_key(ec.SECP256R1()).public_key()
    restricted = other.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
    refused, taken = await outcomes(webpush, [to_web(lab, service=service, vapid_key=restricted), to_web(lab)])
    assert isinstance(refused, Refused)
    assert isinstance(taken, Taken)
    assert webpush.health().ok


@pytest.mark.asyncio
async def test_the_service_unused_for_longest_makes_room(lab: Lab, webpush_settings: WebPushSettings) -> None:
    settings = msgspec.structs.replace(
        webpush_settings,
        allow_endpoints=(lab.urls.webpush, lab.urls.webpush.replace("127.0.0.1", "localhost")),
        push_services=1,
    )
    sender = WebPushSender(CredentialId.of(DEMO, "webpush"), settings, clock=SystemClock(), telemetry=Silent())
    await sender.start()
    one = to_web(lab)
    other = to_web(lab)
    by_name = _at(other, other.device.token.replace("127.0.0.1", "localhost"))
    for each in (one, by_name, to_web(lab)):
        assert isinstance(await outcome(sender, each), Taken)
    await sender.stop(1)
    assert len(accepted(lab, "webpush")) == 3
    assert lab.records.counts["webpush"].connections_opened == 3


@pytest.mark.asyncio
async def test_a_service_that_is_in_use_makes_no_room_for_another_in_the_same_batch(
    lab: Lab, webpush_settings: WebPushSettings
) -> None:
    settings = msgspec.structs.replace(
        webpush_settings,
        allow_endpoints=(lab.urls.webpush, lab.urls.webpush.replace("127.0.0.1", "localhost")),
        push_services=1,
    )
    sender = WebPushSender(CredentialId.of(DEMO, "webpush"), settings, clock=SystemClock(), telemetry=Silent())
    await sender.start()
    there = to_web(lab)
    elsewhere = _at(there, there.device.token.replace("127.0.0.1", "localhost"))
    bad = delivery(Platform("web"), to_web(lab).device.token, fresh())
    got = await outcomes(sender, [to_web(lab), elsewhere, bad, to_web(lab)])
    await sender.stop(1)
    assert [type(each) for each in got] == [Taken, Unreachable, Refused, Taken]
    assert isinstance(got[1], Unreachable)
    assert got[1].code == "push_services_full"
    assert lab.records.counts["webpush"].connections_opened == 1


@pytest.mark.asyncio
async def test_a_surprise_in_one_outcome_loses_none_of_those_behind_it(
    lab: Lab, webpush: WebPushSender, surprises: list[object]
) -> None:
    heard: asyncio.Queue[tuple[Delivery, Outcome]] = asyncio.Queue()

    def report(each: Delivery, outcome: Outcome) -> None:
        if each is first:
            raise RuntimeError("a bug")
        heard.put_nowait((each, outcome))

    first, *others = batch = [to_web(lab) for _ in range(3)]
    webpush.send(batch, report)
    got = {each.id: outcome for each, outcome in [await heard.get() for _ in others]}
    assert [type(got[each.id]) for each in others] == [Taken, Taken]
    assert [type(each) for each in surprises] == [RuntimeError]


@pytest.mark.asyncio
async def test_a_surprise_in_reading_an_answer_is_that_deliverys_outcome(
    lab: Lab, webpush: WebPushSender, surprises: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was sent, and nobody knows whether it was taken."""
    answers = iter([RuntimeError("a bug")])

    def raising(*said: Any) -> Outcome:
        if (bug := next(answers, None)) is not None:
            raise bug
        return outcome_of(*said)

    monkeypatch.setattr("waypost.channels.webpush.sender.outcome_of", raising)
    got = await outcomes(webpush, [to_web(lab) for _ in range(3)])
    assert sorted(type(each).__name__ for each in got) == ["Taken", "Taken", "Unanswered"]
    assert [type(each) for each in surprises] == [RuntimeError]


@pytest.mark.asyncio
async def test_a_surprise_in_one_message_is_its_own_outcome_and_the_others_are_sent(
    lab: Lab, webpush: WebPushSender, surprises: list[object]
) -> None:
    text: Any = "sixteen letters!"
    one = to_web(lab)
    assert one.device.keys is not None
    damaged = delivery(Platform("web"), one.device.token, fresh(), keys=replace(one.device.keys, auth=text))
    got = await outcomes(webpush, [to_web(lab), damaged, to_web(lab)])
    assert [type(each) for each in got] == [Taken, Refused, Taken]
    assert isinstance(got[1], Refused)
    assert got[1].code == "not_made_ready"
    assert [type(each) for each in surprises] == [TypeError]


@pytest.mark.asyncio
async def test_a_surprise_at_one_push_service_leaves_the_others_theirs_and_stops_no_stop(
    lab: Lab, webpush_settings: WebPushSettings, surprises: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    allowed = (lab.urls.webpush, lab.urls.webpush.replace("127.0.0.1", "localhost"))
    settings = msgspec.structs.replace(webpush_settings, allow_endpoints=allowed)
    sender = WebPushSender(CredentialId.of(DEMO, "webpush"), settings, clock=SystemClock(), telemetry=Silent())
    await sender.start()
    post_all = PushService.post_all

    def raising(service: PushService, *said: Any) -> None:
        if service.endpoint.host == "localhost":
            raise RuntimeError("a bug")
        post_all(service, *said)

    monkeypatch.setattr(PushService, "post_all", raising)
    there = to_web(lab)
    elsewhere = _at(there, there.device.token.replace("127.0.0.1", "localhost"))
    got = await outcomes(sender, [to_web(lab), elsewhere, to_web(lab)])
    assert [type(each) for each in got] == [Taken, Refused, Taken]
    told: list[Outcome] = []
    sender.send([elsewhere, to_web(lab)], lambda _, outcome: told.append(outcome))
    await sender.stop(60)
    assert [type(each) for each in told] == [Refused, Taken]
    assert [type(each) for each in surprises] == [RuntimeError, RuntimeError]


def _at(one: Delivery, endpoint: str) -> Delivery:
    return replace(one, address=replace(one.device, token=endpoint))
