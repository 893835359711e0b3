"""Two Twilio accounts of one app, through real processes: the second delivers while the first is refused."""

from __future__ import annotations

import asyncio
import os
import random
import secrets
import signal
from collections import Counter
from pathlib import Path

import pytest

from tests.journeys.harness import Json, Service, running, until
from tests.ports import reserved_port
from tests.shows import shows
from waypost.lab.twilio import ACCOUNT_SID, TOKEN_FILE

pytestmark = pytest.mark.asyncio

FIRST, BACKUP = "+15550100100", "+15550100200"
"""The numbers that each account sends from."""
USERS = 30


async def begin(service: Service) -> Path:
    """Start it with two accounts, of which the first has a wrong token; return the file of that."""
    address = f"127.0.0.1:{reserved_port()}"
    made = service.lab.directory
    wrong = service.directory / "first_token.txt"
    wrong.write_text("0" * 32)

    def account(token: Path, number: str) -> dict[str, str]:
        return {
            "account_sid": ACCOUNT_SID,
            "auth_token_file": str(token),
            "from_number": number,
            "endpoint": service.lab.urls["twilio"],
            "ca_file": str(made / "ca.pem"),
        }

    app = {
        "sms": account(wrong, FIRST),
        "sms/backup": account(made / TOKEN_FILE, BACKUP),
        "fallback": {"sms": ["backup"]},
        "rates": {"sms": {"unlimited": True}, "sms/backup": {"unlimited": True}},
    }
    service.configure(app=app, workers=2, rest={"public_url": f"http://{address}"})
    service.url = f"http://{address}"
    await service.start()
    return wrong


async def send(service: Service, user: str, guarantee: str = "at_least_once") -> str:
    """Submit a text message that says something else than those before; return the notification's id."""
    title = f"Your code {secrets.token_hex(4)}"
    body = {"user_id": user, "title": title, "channels": ["sms"], "guarantee": guarantee}
    status, answer = await service.ask("POST", "/v1/notifications", body, anew=True)  # workers die meanwhile
    assert status == 202, answer
    return str(answer["id"])


async def receipt_of(service: Service, notification_id: str, *statuses: str) -> Json:
    """Wait until its receipt has one of *statuses*; return it."""

    async def found() -> Json | None:
        _, answer = await service.ask("GET", f"/v1/notifications/{notification_id}")
        receipts = [each for each in answer["receipts"] if each["status"] in statuses]
        return receipts[0] if receipts else None

    return Json(await until(found, f"{statuses} of {notification_id}"))


async def taken(service: Service) -> list[Json]:
    """What Twilio took."""
    received = (await service.lab.ask("GET", "/received?limit=10000"))["received"]
    return [each for each in received if each["gateway"] == "twilio" and each["accepted"]]


@shows("S4-21")
@pytest.mark.timeout(300)
async def test_a_second_account_delivers_until_the_first_is_mended(tmp_path: Path, rng: random.Random) -> None:
    """S4-21: 20003 by the first, sent by the second, and its report is the receipt; nobody is told twice for it.

    Workers are killed meanwhile: what is sent at most once arrives at most once, the rest once each. Then the first
    account gets its right token, and sends again.
    """
    async with running(tmp_path, start=False, workers=2) as service:
        wrong = await begin(service)
        users = [f"user-{n}" for n in range(USERS)]
        for n, user in enumerate(users):
            number = {"address": f"+4917012{n:05}"}
            assert (await service.ask("PUT", f"/v1/users/{user}/contacts/phone", number))[0] == 201
        receipt = await receipt_of(service, await send(service, users[0]), "delivered")
        assert [(each["credential"], each["status"], each["code"]) for each in receipt["attempts"]] == [
            ("sms", "denied", "20003"),
            ("sms/backup", "taken", ""),
        ]
        assert (receipt["credential"], receipt["retries"]) == ("sms/backup", 0)

        _, said = await service.ask("POST", "/v1/explain", {"user_id": users[0], "title": "Hi", "channels": ["sms"]})
        (target,) = said["targets"]
        assert {target["credential"], *target["fallbacks"]} == {"demo/sms", "demo/sms/backup"}

        once = await asyncio.gather(*(send(service, user, "at_most_once") for user in users))
        for _ in range(2):
            await asyncio.sleep(rng.uniform(0.05, 0.5))  # a kill at any point
            await service.kill(rng.choice(service.worker_pids()))
        again = await asyncio.gather(*(send(service, user) for user in users))
        for each in again:
            assert (await receipt_of(service, each, "sent", "delivered"))["credential"] == "sms/backup"
        arrived = await taken(service)
        copies = Counter(each["notification_id"] for each in arrived)
        assert {copies[each] for each in again} == {1}, "nobody died after they were sent"

        wrong.write_text((service.lab.directory / TOKEN_FILE).read_text())
        os.kill(service.pid, signal.SIGHUP)

        async def is_used() -> bool:
            receipt = await receipt_of(service, await send(service, rng.choice(users)), "sent", "delivered")
            return bool(receipt["credential"] == "sms")

        await until(is_used, "the first account again")
        arrived = await taken(service)
        copies = Counter(each["notification_id"] for each in arrived)
        assert {copies[each] for each in once} <= {0, 1}
        senders = {each["payload"]["From"] if isinstance(each["payload"], dict) else "" for each in arrived}
        assert senders <= {FIRST, BACKUP, ""}
