"""A sender may show a client certificate in place of a provider token; it says what it is good for."""

import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
import pytest_asyncio
from h2.events import RemoteSettingsChanged

from tests.adapters.lab.senders import TOKEN, Senders
from tests.adapters.lab.test_wire import limit_is
from tests.adapters.lab.wire import Wire
from waypost.lab import Lab

pytestmark = pytest.mark.asyncio

APP = "com.example.demo"
Dial = Callable[..., Awaitable[Senders]]


def trusting(lab: Lab, certificate: Path) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=lab.settings.directory / "ca.pem")
    context.load_cert_chain(certificate)
    return context


@pytest_asyncio.fixture
async def certified(lab: Lab, senders: Senders, tmp_path: Path) -> AsyncIterator[Dial]:
    """Senders that show a certificate made for the test, and no provider token."""
    clients: list[httpx.AsyncClient] = []

    async def dial(**wanted: Any) -> Senders:
        made = await senders.admin("POST", "/apns/certificates", {"topics": [APP], **wanted})
        path = tmp_path / f"{made['serial']}.pem"
        path.write_text(made["certificate"])
        clients.append(httpx.AsyncClient(http2=True, verify=trusting(lab, path)))
        bare = Senders(clients[-1], lab.urls, lab.settings.directory)
        bare.apns_token = made["serial"]  # nothing a provider token could look like: the header must be ignored
        return bare

    yield dial
    for client in clients:
        await client.aclose()


async def test_a_certificate_alone_is_enough_and_a_provider_token_beside_it_is_ignored(certified: Dial) -> None:
    sender = await certified()
    assert (await sender.apns()).status_code == 200
    assert (await sender.apns({"authorization": None})).status_code == 200


async def test_the_topic_may_be_left_out_where_the_certificate_has_one(certified: Dial) -> None:
    one, two = await certified(), await certified(topics=[APP, f"{APP}.voip"])
    assert (await one.apns({"apns-topic": None})).status_code == 200
    assert (await two.apns({"apns-topic": None})).json() == {"reason": "MissingTopic"}


@pytest.mark.parametrize(
    ("topics", "headers", "payload", "status", "reason"),
    [
        (["com.example.other"], {}, None, 400, "TopicDisallowed"),
        ([APP], {"apns-topic": f"{APP}.voip", "apns-push-type": "voip"}, {"aps": {}}, 400, "TopicDisallowed"),
        (
            [APP], {"apns-topic": f"{APP}.location-query", "apns-push-type": "location"}, {"aps": {}},
            403, "MissingProviderToken",
        ),
    ],
)  # fmt: skip
async def test_a_certificate_is_good_for_its_topics_and_kinds(
    certified: Dial, topics: list[str], headers: dict, payload: Any, status: int, reason: str
) -> None:
    answer = await (await certified(topics=topics)).apns(headers, payload)
    assert (answer.status_code, answer.json()) == (status, {"reason": reason})


async def test_a_voip_certificate_sends_voip(certified: Dial) -> None:
    sender = await certified(topics=[APP, f"{APP}.voip"])
    answer = await sender.apns({"apns-topic": f"{APP}.voip", "apns-push-type": "voip"}, {"aps": {}})
    assert answer.status_code == 200


async def test_a_certificate_of_the_other_environment_is_refused(certified: Dial) -> None:
    answer = await (await certified(environments=["sandbox"])).apns()
    assert (answer.status_code, answer.json()) == (403, {"reason": "BadCertificateEnvironment"})


async def test_a_revoked_certificate_is_refused(certified: Dial, senders: Senders) -> None:
    sender = await certified()
    await senders.admin("DELETE", f"/apns/certificates/{sender.apns_token}")
    answer = await sender.apns()
    assert (answer.status_code, answer.json()) == (403, {"reason": "BadCertificate"})


async def test_an_expired_certificate_ends_the_handshake(certified: Dial, lab: Lab, tmp_path: Path) -> None:
    sender = await certified(days=-1)
    context = trusting(lab, tmp_path / f"{sender.apns_token}.pem")
    context.set_alpn_protocols(["h2"])

    async def talk() -> None:
        wire = await Wire.dial(lab.urls.apns, lab.settings.directory, context=context)
        try:
            await wire.until(RemoteSettingsChanged)
        finally:
            await wire.close()

    with pytest.raises((ssl.SSLError, ConnectionError)):
        await talk()
    assert lab.records.counts["apns"].connections_opened == 0


async def test_the_file_the_lab_writes_opens_a_connection_for_1000_streams_at_once(lab: Lab) -> None:
    context = trusting(lab, lab.settings.directory / "apns-client.pem")
    context.set_alpn_protocols(["h2"])
    wire = await Wire.dial(lab.urls.apns, lab.settings.directory, context=context)
    await wire.until(RemoteSettingsChanged, limit_is(1000))
    headers = {"apns-topic": APP, "apns-push-type": "alert"}
    ids = wire.send_all([(f"/3/device/{TOKEN}", headers, b'{"aps":{"alert":"a"}}')] * 5)
    assert [await wire.answer(stream_id) for stream_id in ids] == [200] * 5
    await wire.close()
