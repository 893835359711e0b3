"""An address gets nothing but its code until that was entered: a mailbox and a telephone, through real processes."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import quote, urlsplit

import aiohttp
import pytest

from tests.journeys.harness import Json, Service, running, until
from tests.ports import reserved_port
from waypost.lab.twilio import ACCOUNT_SID, TOKEN_FILE

pytestmark = pytest.mark.asyncio

MAILBOX, OTHER, NUMBER = "ann@example.com", "ann@example.org", "+491701234567"
CODE = re.compile(r"\b[0-9]{6}\b")


async def begin(service: Service) -> None:
    """Start it with a mail server, a Twilio account, and contacts of both kinds that are to be verified."""
    made, secret = service.lab.directory, service.directory / "contacts.key"
    secret.write_bytes(bytes(range(32)))
    service.url = f"http://127.0.0.1:{reserved_port()}"
    ca = {"ca_file": f"{made}/ca.pem"}
    email = {
        "host": "127.0.0.1",
        "port": urlsplit(service.lab.urls["email"]).port,
        "sender": "news@example.com",
        "username": "lab",
        "password_file": f"{made}/smtp-password",
    }
    sms = {
        "account_sid": ACCOUNT_SID,
        "auth_token_file": f"{made}/{TOKEN_FILE}",
        "from_number": "+15550100100",
        "endpoint": service.lab.urls["twilio"],
    }
    contacts = {"verify": ["email", "phone"], "text": "{code} or {link}, for {minutes} minutes", "codes_per_hour": 3}
    service.configure(
        workers=1,
        app={"email": email | ca, "sms": sms | ca, "contacts": contacts},
        contacts={"secret_file": str(secret)},
        rest={"public_url": service.url},
    )
    await service.start()


async def arrived(service: Service, gateway: str, address: str) -> list[str]:
    """The texts that an address was sent, oldest first."""
    path = f"/received?gateway={gateway}&token={quote(address)}"
    taken = [each for each in (await service.lab.ask("GET", path))["received"] if each["accepted"]]
    return [each["payload"]["text"] if gateway == "email" else str(each["payload"]) for each in taken]


async def nth(service: Service, gateway: str, address: str, n: int) -> str:
    """Wait until an address was sent *n* messages; the last one's text."""

    async def came() -> list[str] | None:
        texts = await arrived(service, gateway, address)
        return texts if len(texts) >= n else None

    texts: list[str] = await until(came, f"message {n} to {address}")
    assert len(texts) == n
    return texts[-1]


def code_in(text: str) -> str:
    """The code that a text has."""
    found = CODE.search(text)
    assert found is not None, text
    return found.group()


async def tell(service: Service, *channels: str) -> Json:
    """Notify ann; the notification as it ended."""
    body = {"user_id": "ann", "title": "Hello", "channels": list(channels)}
    status, answer = await service.ask("POST", "/v1/notifications", body)
    assert status == 202, answer

    async def ended() -> Json | None:
        _, said = await service.ask("GET", f"/v1/notifications/{answer['id']}")
        return said if said["notification"]["finished_at"] else None

    return Json(await until(ended, "its end"))


async def enter(service: Service, kind: str, code: str) -> tuple[int, Json]:
    """Enter a code for a contact of ann's."""
    return await service.ask("POST", f"/v1/users/ann/contacts/{kind}/verify", {"code": code})


@pytest.mark.timeout(240)
async def test_an_address_is_sent_to_once_its_code_was_entered(tmp_path: Path) -> None:
    async with running(tmp_path, start=False) as service:
        await begin(service)
        status, said = await service.ask("PUT", "/v1/users/ann/contacts/email", {"address": MAILBOX})
        assert (status, said["verified"], said["code_sent"]) == (201, False, True)
        first = code_in(await nth(service, "email", MAILBOX, 1))
        before = await tell(service, "email")
        assert [(each["status"], each["reason"]) for each in before["receipts"]] == [("suppressed", "unverified")]
        _, why = await service.ask("POST", "/v1/explain", {"user_id": "ann", "title": "Hi", "channels": ["email"]})
        assert {"rule": "contacts", "verdict": "suppressed", "reason": "unverified"}.items() <= why["routing"][
            0
        ].items()

        wrong = f"{(int(first) + 1) % 1_000_000:06}"
        assert (await enter(service, "email", wrong))[1]["code"] == "wrong_code"
        assert (await service.ask("POST", "/v1/users/ann/contacts/email/send-code"))[0] == 202
        second = code_in(await nth(service, "email", MAILBOX, 2))
        assert first == second or (await enter(service, "email", first))[0] == 409, "the one before is worth nothing"
        status, said = await enter(service, "email", second)
        assert (status, said["verified"]) == (200, True)
        after = await tell(service, "email")
        assert [each["status"] for each in after["receipts"]] == ["sent"]

        await service.ask("PUT", "/v1/users/ann/contacts/email", {"address": OTHER})
        await nth(service, "email", OTHER, 1)
        assert (await enter(service, "email", second))[0] == 409, "a code of another address"
        assert (await tell(service, "email"))["receipts"][0]["reason"] == "unverified"

        await service.ask("PUT", "/v1/users/ann/contacts/phone", {"address": NUMBER})
        text = await nth(service, "twilio", NUMBER, 1)
        found = re.search(r"http://\S+/v/demo/[\w-]+", text)
        assert found is not None, text
        async with aiohttp.request("GET", found.group()) as page:
            assert page.status == 200
        assert (await tell(service, "sms"))["receipts"][0]["reason"] == "unverified", "a preview confirms nothing"
        async with aiohttp.request("POST", found.group()) as thanks:
            assert thanks.status == 200
        async with aiohttp.request("POST", found.group()) as again:
            assert again.status == 404
        assert (await tell(service, "sms"))["receipts"][0]["status"] in ("sent", "delivered")

        _, history = await service.ask("GET", "/v1/notifications?user_id=ann")
        seen = str([(await service.ask("GET", f"/v1/notifications/{each['id']}"))[1] for each in history["items"]])
        log = (tmp_path / "serve.log").read_text()
        for secret in (first, second, code_in(text), found.group().rsplit("/", 1)[1]):
            assert secret not in seen and secret not in log
