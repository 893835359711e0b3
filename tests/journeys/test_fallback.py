"""One channel takes over from another: push, and SMS where no device confirms it, through real processes."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import aiohttp
import pytest

from tests.journeys.harness import Json, Service, running, until
from tests.ports import reserved_port
from tests.shows import shows
from waypost.lab.twilio import ACCOUNT_SID, TOKEN_FILE

pytestmark = pytest.mark.asyncio

NUMBER = "+491701234567"
OTP = [{"to": "push", "until": "delivered", "for": "1s"}, "sms"]
LONG = [{"to": "push", "until": "delivered", "for": "10m"}, "sms"]
USERS = 40


def told(folder: Path, *, workers: int = 1) -> AbstractAsyncContextManager[Service]:
    """A service whose app has a Twilio account, and whose pushes carry signed links; left to be started."""
    return running(folder, start=False, workers=workers)


async def begin(service: Service, **settings: object) -> None:
    """Configure and start it, on a port that Twilio is told."""
    address = f"127.0.0.1:{reserved_port()}"
    made = service.lab.directory
    secret = service.directory / "receipts.key"
    secret.write_bytes(bytes(range(32)))
    sms = {
        "account_sid": ACCOUNT_SID,
        "auth_token_file": str(made / TOKEN_FILE),
        "from_number": "+15550100100",
        "endpoint": service.lab.urls["twilio"],
        "ca_file": str(made / "ca.pem"),
    }
    service.configure(
        app={"sms": sms, "rates": {"sms": {"unlimited": True}}},
        rest={"public_url": f"http://{address}"},
        receipts={"secret_file": str(secret)},
        **settings,
    )
    service.url = f"http://{address}"
    await service.start()


async def register(service: Service, user: str, number: str = NUMBER) -> str:
    """Give a user an Android telephone with an app and a number; return the app's token."""
    (token,) = (await service.lab.ask("POST", "/tokens", {"platform": "android", "count": 1}))["tokens"]
    device = {"platform": "android", "token": token}
    assert (await service.ask("PUT", f"/v1/devices/{user}/app", device))[0] == 201
    assert (await service.ask("PUT", f"/v1/users/{user}/contacts/phone", {"address": number}))[0] == 201
    return str(token)


async def send(service: Service, user: str, channels: object) -> str:
    """Submit a code; return the notification's id."""
    body = {"user_id": user, "title": "Your code", "body": "1234", "urgency": "critical", "channels": channels}
    status, answer = await service.ask("POST", "/v1/notifications", body)
    assert status == 202, answer
    return str(answer["id"])


async def stands(service: Service, notification_id: str) -> tuple[str, dict[str, str]]:
    """How a notification stands, and each of its deliveries by channel."""
    _, answer = await service.ask("GET", f"/v1/notifications/{notification_id}")
    return answer["notification"]["status"], {each["channel"]: each["status"] for each in answer["receipts"]}


async def ended(service: Service, notification_id: str, expected: tuple[str, dict[str, str]]) -> None:
    """Wait until it stands so."""

    async def is_so() -> bool:
        return await stands(service, notification_id) == expected

    await until(is_so, f"{expected}, after {await stands(service, notification_id)}")


async def link_in(service: Service, notification_id: str) -> str:
    """The signed link in the push that arrived."""

    async def arrived() -> list[Json]:
        return [each for each in await service.lab.arrivals(notification_id) if each["gateway"] == "fcm"]

    (push,) = await until(arrived, "the push")
    return str(push["payload"]["message"]["data"]["waypost_receipt"])


@shows("S2-29", "S2-32", "S2-33")
async def test_where_no_device_confirms_a_text_message_comes_and_its_report_is_the_receipt(tmp_path: Path) -> None:
    """S2-29, S2-32, S2-33: sent, the timer, exactly one SMS through Twilio, and what Twilio says of it."""
    async with told(tmp_path) as service:
        await begin(service)
        await register(service, "ann")
        made = await send(service, "ann", OTP)
        await ended(service, made, ("delivered", {"fcm": "sent", "sms": "delivered"}))
        arrived = Counter(each["gateway"] for each in await service.lab.arrivals(made))
        assert arrived == {"fcm": 1, "twilio": 1}


@shows("S1-08", "S1-56", "S2-30", "S2-31")
async def test_a_confirmed_push_needs_no_text_message(tmp_path: Path) -> None:
    """S2-30, S2-31: a receipt sets delivered and cancels the fallback that waits."""
    async with told(tmp_path) as service:
        await begin(service)
        await register(service, "ann")
        made = await send(service, "ann", LONG)
        link = await link_in(service, made)
        await ended(service, made, ("processing", {"fcm": "sent", "sms": "pending"}))
        async with aiohttp.request("GET", link) as page:
            assert page.status == 200
        assert (await stands(service, made))[1]["fcm"] == "sent", "a preview confirms nothing"
        async with aiohttp.request("POST", link) as answer:
            assert answer.status == 204
        assert await stands(service, made) == ("delivered", {"fcm": "delivered", "sms": "cancelled"})
        assert [each["gateway"] for each in await service.lab.arrivals(made)] == ["fcm"]


async def test_a_number_that_is_dead_is_forgotten_and_its_receipt_says_why(tmp_path: Path) -> None:
    """The lab takes it, and reports 30005: the number is not in use."""
    async with told(tmp_path) as service:
        await begin(service)
        await register(service, "ann", "+49170123430005")
        made = await send(service, "ann", ["sms"])
        await ended(service, made, ("failed", {"sms": "failed"}))
        _, answer = await service.ask("GET", f"/v1/notifications/{made}")
        assert (answer["receipts"][0]["code"], answer["receipts"][0]["reason"]) == ("30005", "the number is not in use")

        async def forgotten() -> bool:
            return (await service.ask("GET", "/v1/users/ann/contacts"))[1] == {"contacts": []}

        await until(forgotten, "the end of the contact")


@shows("S2-32")
async def test_a_push_that_fails_is_not_waited_for(tmp_path: Path) -> None:
    """S2-32: at once, though the wait would be ten minutes."""
    async with told(tmp_path) as service:
        await begin(service)
        token = await register(service, "ann")
        await service.lab.script({"do": {"gone": {}}, "where": "fcm", "match": {"token": token}})
        made = await send(service, "ann", LONG)
        await ended(service, made, ("partial", {"fcm": "failed", "sms": "delivered"}))


async def test_nobody_is_told_by_a_channel_that_was_not_asked_for(tmp_path: Path) -> None:
    """S1-53: a provider that fails starts no other channel."""
    async with told(tmp_path) as service:
        await begin(service)
        token = await register(service, "ann")
        await service.lab.script({"do": {"gone": {}}, "where": "fcm", "match": {"token": token}})
        status, answer = await service.ask("POST", "/v1/notifications", {"user_id": "ann", "title": "Hello"})
        assert status == 202
        await ended(service, answer["id"], ("failed", {"fcm": "failed"}))


@shows("S2-32")
@pytest.mark.timeout(420)
async def test_confirmations_race_timers_while_workers_are_killed(tmp_path: Path, rng: random.Random) -> None:
    """Each user gets at most one text message, whoever dies when; each notification comes to an end."""
    async with told(tmp_path, workers=2) as service:
        await begin(service, workers=2)
        await asyncio.gather(*(register(service, f"user-{n}", f"+4917012{n:05}") for n in range(USERS)))
        made = await asyncio.gather(*(send(service, f"user-{n}", OTP) for n in range(USERS)))

        async def confirm(notification_id: str) -> None:
            link = await link_in(service, notification_id)
            await asyncio.sleep(rng.uniform(0.0, 1.5))  # about when its timer ends

            async def confirmed() -> bool:
                async with aiohttp.request("POST", link) as answer:
                    return answer.status == 204

            await until(confirmed, "an answer")

        confirming = [asyncio.create_task(confirm(each)) for each in made]
        for _ in range(2):
            await asyncio.sleep(rng.uniform(0.2, 1.0))  # a kill at any point of the race
            await service.kill(rng.choice(service.worker_pids()))
        await asyncio.gather(*confirming)
        for each in made:

            async def is_final(notification_id: str = each) -> bool:
                return (await stands(service, notification_id))[0] not in ("pending", "processing")

            await until(is_final, "the end of each")
        copies = Counter(
            each["notification_id"]
            for each in (await service.lab.ask("GET", "/received?limit=10000"))["received"]
            if each["gateway"] == "twilio" and each["accepted"]
        )
        assert set(copies.values()) <= {1}, copies
        for each in made:
            status, by_channel = await stands(service, each)
            # Who dies between sending a text message and noting it leaves it unknown: it is never sent again.
            assert status == ("partial" if by_channel["sms"] == "unknown" else "delivered"), by_channel
            sent = by_channel["sms"] in ("sent", "delivered", "unknown")
            assert sent or (by_channel["sms"] == "cancelled" and each not in copies), by_channel
