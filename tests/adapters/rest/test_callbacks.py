"""What a provider reports of messages that it took, known by its signature alone: here Twilio's."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from urllib.parse import urlencode

import httpx
import msgspec
import pytest

from tests.adapters.rest.service import DEMO, Service, served, shown
from waypost.adapters.in_process.limiter import MemoryLimiter
from waypost.channels.sms.callbacks import signature
from waypost.channels.sms.plugin import PLUGIN
from waypost.channels.sms.settings import CHANNEL, SmsSettings
from waypost.domain.credential import CredentialId
from waypost.domain.limits import FixedWindow
from waypost.domain.settlement import Sent
from waypost.entrypoints.limits import Bounds, EntrypointLimits
from waypost.entrypoints.rest.app import build_app
from waypost.entrypoints.rest.settings import RestSettings

pytestmark = [pytest.mark.asyncio, pytest.mark.usefixtures("each_store")]

PUBLIC = "https://push.example.com/waypost"
TOKEN = "an-auth-token"
FORM = "application/x-www-form-urlencoded"


@asynccontextmanager
async def sent(folder: Path) -> AsyncIterator[tuple[Service, httpx.AsyncClient, str]]:
    """Serve an app with a Twilio account that has sent one message; the client has no key."""
    file = folder / "twilio.token"
    file.write_text(f"{TOKEN}\n")
    settings = SmsSettings(account_sid="AC" + "0" * 32, auth_token_file=str(file), from_number="+15550100100")
    assert PLUGIN.callback is not None
    async with served(RestSettings(public_url=PUBLIC)) as (service, _):
        service.api = msgspec.structs.replace(
            service.api,
            callbacks={CredentialId(DEMO, CHANNEL): partial(PLUGIN.callback, settings)},
            grounds={"callbacks": service.api.grounds["receipts"]},
        )
        service.app = build_app(service.api)
        async with service.client() as known:
            made = (await known.post("/v1/notifications", json=shown())).json()["id"]
        await service.settled(Sent("SM1"))
        async with service.client() as client:
            del client.headers["authorization"]
            yield service, client, made


async def report(
    client: httpx.AsyncClient,
    made: str,
    fields: Mapping[str, str],
    *,
    token: str = TOKEN,
    signed: Mapping[str, str] | None = None,
    path: str = "/callbacks/demo/sms/default",
) -> httpx.Response:
    """Post *fields* of the first target as Twilio does, or with the signature of other ones."""
    where = f"{path}?id={made}&n=0"
    said = signature(token, PUBLIC + where, list((signed or fields).items()))
    headers = {"content-type": FORM, "x-twilio-signature": said}
    return await client.post(where, content=urlencode(fields), headers=headers)


async def receipt(service: Service, made: str) -> tuple[str, str | None]:
    """How the target stands, and with which code."""
    async with service.client() as known:
        found = (await known.get(f"/v1/notifications/{made}")).json()["receipts"][0]
    return found["status"], found.get("code")


async def test_a_report_is_the_receipt_and_a_status_only_goes_up(tmp_path: Path) -> None:
    async with sent(tmp_path) as (service, client, made):
        for status, expected in (("sent", "sent"), ("delivered", "delivered"), ("read", "opened"), ("sent", "opened")):
            assert (await report(client, made, {"MessageStatus": status})).status_code == 204
            assert (await receipt(service, made))[0] == expected
        assert (await report(client, made, {"MessageStatus": "delivered"})).status_code == 204
        assert (await receipt(service, made))[0] == "opened"


async def test_what_came_back_has_failed_with_its_code(tmp_path: Path) -> None:
    async with sent(tmp_path) as (service, client, made):
        answer = await report(client, made, {"MessageStatus": "undelivered", "ErrorCode": "30003"})
        assert (answer.status_code, await receipt(service, made)) == (204, ("failed", "30003"))


async def test_what_the_provider_did_not_sign_changes_nothing_and_is_told_nothing(tmp_path: Path) -> None:
    fields = {"MessageStatus": "undelivered", "ErrorCode": "30005"}
    async with sent(tmp_path) as (service, client, made):
        unsigned = await client.post(f"/callbacks/demo/sms/default?id={made}&n=0", content=urlencode(fields))
        forged = [
            unsigned,
            await report(client, made, fields, token="another"),
            await report(client, made, fields, signed={"MessageStatus": "delivered"}),
            await report(client, "019c1234-5678-7abc-8def-0123456789ab", fields, token="another"),
        ]
        assert {(each.status_code, each.json()["code"], each.json()["detail"]) for each in forged} == {
            (403, "forbidden", "the request is not signed by the provider")
        }
        assert await receipt(service, made) == ("sent", None)


@pytest.mark.parametrize(
    "path",
    ["/callbacks/demo/sms/other", "/callbacks/other/sms/default", "/callbacks/demo/fcm/default", "/callbacks/x/y/z"],
)
async def test_where_nobody_reports_is_nothing(tmp_path: Path, path: str) -> None:
    async with sent(tmp_path) as (service, client, made):
        answer = await report(client, made, {"MessageStatus": "delivered"}, path=path)
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
        assert (await receipt(service, made))[0] == "sent"


async def test_what_is_not_signed_counts_for_its_address_and_what_is_does_not(tmp_path: Path) -> None:
    async with sent(tmp_path) as (service, client, made):
        bounds = Bounds(address=FixedWindow(2, 60_000))
        limits = EntrypointLimits(bounds, MemoryLimiter(service.clock), service.clock, service.telemetry)
        service.api = msgspec.structs.replace(service.api, limits=limits)
        client._transport = httpx.ASGITransport(build_app(service.api))  # type: ignore[arg-type] # as in the service
        for _ in range(3):
            assert (await report(client, made, {"MessageStatus": "sent"})).status_code == 204
        nowhere = await report(client, made, {"MessageStatus": "sent"}, path="/callbacks/demo/sms/other")
        forged = [await report(client, made, {"MessageStatus": "sent"}, token="another") for _ in range(2)]
        assert [each.status_code for each in (nowhere, *forged)] == [404, 403, 429]
        assert (await report(client, made, {"MessageStatus": "delivered"})).status_code == 204
        assert (await receipt(service, made))[0] == "delivered"


async def test_a_report_is_small(tmp_path: Path) -> None:
    """Well below what callers may submit, since anybody may post it."""
    async with sent(tmp_path) as (service, client, made):
        large = {"MessageStatus": "delivered", "Body": "x" * 65_536}
        assert (await report(client, made, large)).status_code == 413
        fits = {"MessageStatus": "delivered", "Body": "x" * 60_000}
        assert (await report(client, made, fits)).status_code == 204
        assert (await receipt(service, made))[0] == "delivered"
