"""Push services without HTTP/2, and where a name may lead: against the lab's ports."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import msgspec
import pytest
import pytest_asyncio

from tests.adapters.senders.bench import SystemClock, accepted, fresh, headers_of, outcome, outcomes, payload_of, script
from tests.unit.adapters.deliveries import delivery
from waypost.channels.push import patience
from waypost.channels.webpush.sender import WebPushSender
from waypost.channels.webpush.settings import WebPushSettings
from waypost.domain.content import Content
from waypost.domain.credential import CredentialId
from waypost.domain.delivery import Delivery
from waypost.domain.device import Platform, SubscriptionKeys
from waypost.domain.ids import AppId
from waypost.domain.outcome import Gone, Outcome, Refused, Taken, Throttled, Unanswered, Unreachable
from waypost.lab import Lab
from waypost.lab.subscriptions import Transport
from waypost.telemetry.sink import Silent

ORIGINS: list[Transport] = ["http1", "plain"]


def at(lab: Lab, transport: Transport, content: Content | None = None) -> Delivery:
    """To a browser whose push service is reached like this."""
    (made,) = lab.webpush.subscriptions.make(1, service="rfc", vapid_key=None, transport=transport)
    keys = SubscriptionKeys(p256dh=made.public_key, auth=made.auth)
    return delivery(Platform("web"), lab.webpush.endpoint(made), fresh(content), keys=keys)


@pytest_asyncio.fixture
async def sender(lab: Lab, webpush_settings: WebPushSettings) -> AsyncIterator[WebPushSender]:
    """One that may reach all of the lab's ports."""
    allowed = (lab.urls.webpush, lab.urls.webpush_http1, lab.urls.webpush_plain)
    made = await started(msgspec.structs.replace(webpush_settings, allow_endpoints=allowed))
    yield made
    await made.stop(1)


async def started(settings: WebPushSettings) -> WebPushSender:
    """A sender of these settings."""
    sender = WebPushSender(CredentialId.of(AppId("demo"), "webpush"), settings, clock=SystemClock(), telemetry=Silent())
    await sender.start()
    return sender


@pytest.mark.asyncio
@pytest.mark.parametrize("transport", ORIGINS)
async def test_a_push_service_without_http2_takes_and_decrypts(
    lab: Lab, sender: WebPushSender, transport: Transport
) -> None:
    """The first hundred wait while HTTP/2 is tried; what follows goes the right way at once."""
    content = Content(title="Title", collapse_key="order7")
    for _ in range(2):
        got = await outcomes(sender, [at(lab, transport, content) for _ in range(100)])
        assert all(isinstance(one, Taken) and one.provider_id for one in got)
    records = accepted(lab, "webpush")
    assert len(records) == 200
    assert payload_of(lab, records[0])["title"] == "Title"
    headers = headers_of(lab, records[0])
    assert (headers["topic"], headers["urgency"], headers["content-encoding"]) == ("order7", "normal", "aes128gcm")


@pytest.mark.asyncio
@pytest.mark.parametrize("transport", ORIGINS)
async def test_errors_are_read_as_over_http2(lab: Lab, sender: WebPushSender, transport: Transport) -> None:
    await lab.script(script({"where": "webpush", "do": {"answer": {"status": 429, "retry_after": 7}}}))
    assert await outcome(sender, at(lab, transport)) == Throttled("http_429", 7_000, whole=True)
    await lab.script(script({"where": "webpush", "do": {"gone": {}}}))
    assert isinstance(await outcome(sender, at(lab, transport)), Gone)
    await lab.script(script({"where": "webpush", "do": {"accept_then_drop": True}}))
    assert isinstance(await outcome(sender, at(lab, transport)), Unanswered)


@pytest.mark.asyncio
@pytest.mark.parametrize("transport", ["h2", *ORIGINS])
async def test_a_redirect_is_refused_and_nobody_follows_it(
    lab: Lab, sender: WebPushSender, transport: Transport
) -> None:
    location = {"location": f"{lab.urls.webpush_plain}/elsewhere"}
    await lab.script(script({"where": "webpush", "do": {"answer": {"status": 307, "headers": location}}}))
    assert await outcome(sender, at(lab, transport)) == Refused("http_307", "redirects are not followed")
    assert len(list(lab.records.since(-1))) == 1


@pytest.mark.asyncio
async def test_a_client_that_stops_sends_over_http1_what_waited_for_http2(
    lab: Lab, webpush_settings: WebPushSettings
) -> None:
    """The push service turns out to speak no HTTP/2 while the sender drains."""
    sender = await started(msgspec.structs.replace(webpush_settings, allow_endpoints=(lab.urls.webpush_http1,)))
    told: list[Outcome] = []
    sender.send([at(lab, "http1") for _ in range(60)], lambda _, outcome: told.append(outcome))
    await sender.stop(60)
    assert [type(each) for each in told] == [Taken] * 60


@pytest.mark.asyncio
async def test_a_client_that_stops_says_what_was_written(lab: Lab, webpush_settings: WebPushSettings) -> None:
    """One request is on the wire and never answered; the drain's time is over."""
    arrived, hung_up = asyncio.Event(), asyncio.Event()

    async def says_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        arrived.set()
        await reader.read()
        writer.close()
        hung_up.set()

    server = await asyncio.start_server(says_nothing, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    sender = await started(msgspec.structs.replace(webpush_settings, allow_endpoints=(url,)))
    one = delivery(Platform("web"), f"{url}/x", fresh(), keys=at(lab, "plain").device.keys)
    sending = asyncio.ensure_future(outcome(sender, one))
    await arrived.wait()
    await sender.stop(0.0)
    got = await sending
    assert isinstance(got, Unanswered)
    assert got.code == "connection_lost"
    await hung_up.wait()
    server.close()


@pytest.mark.asyncio
async def test_what_waits_for_a_connection_at_its_deadline_is_not_sent(
    lab: Lab, webpush_settings: WebPushSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The one that is on the wire is waited for; a push service that is slow gets nothing that is given up soon."""
    monkeypatch.setattr(patience, "EXPECTED_S", 0.5)
    await lab.script(script({"where": "webpush", "do": {"black_hole": {}}}))
    only = msgspec.structs.replace(webpush_settings, allow_endpoints=(lab.urls.webpush_plain,), connections=1)
    sender = await started(only)
    ended: dict[str, Outcome] = {}
    one_ended = asyncio.Event()

    def report(one: Delivery, outcome: Outcome) -> None:
        ended[one.device.token] = outcome
        one_ended.set()

    on_the_wire, queued = at(lab, "plain"), at(lab, "plain")
    sender.send([on_the_wire, queued], report)
    await one_ended.wait()
    assert ended == {queued.device.token: Unreachable("not_sent", "deadline passed before it was sent")}
    await sender.stop(0.0)
    assert isinstance(ended[on_the_wire.device.token], Unanswered)


@pytest.mark.asyncio
async def test_nobody_there_is_unreachable(lab: Lab, sender: WebPushSender) -> None:
    one = at(lab, "plain")
    await lab.stop()
    got = await outcome(sender, one)
    assert isinstance(got, Unreachable)
    assert got.code == "not_sent"
    await lab.start()


@pytest.mark.asyncio
async def test_a_host_of_the_list_that_leads_into_a_private_network_is_never_connected_to(
    lab: Lab, webpush_settings: WebPushSettings
) -> None:
    """What a name means is up to whoever runs its DNS: here it is this machine."""
    sender = await started(msgspec.structs.replace(webpush_settings, allow_endpoints=("localhost",)))
    inside = delivery(Platform("web"), "https://localhost/push/x", fresh(), keys=at(lab, "h2").device.keys)
    got = await outcome(sender, inside)
    assert got == Unreachable("not_sent", "localhost has an address that may not be dialed for it")
    await sender.stop(1)
