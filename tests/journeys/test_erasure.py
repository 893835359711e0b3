"""A user is forgotten by a service that runs: no file that it writes knows them, byte by byte."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.journeys.harness import Json, Service, running, until
from tests.ports import reserved_port
from waypost.lab.twilio import ACCOUNT_SID, TOKEN_FILE

pytestmark = pytest.mark.asyncio

SOON = """
from waypost.pipeline import erase
from waypost.runtime import duties
from waypost.stores.sql import checkpoint

erase.LINGER_MS = 1_000
duties.SWEEP_S = duties.ERASE_S = 0.5
checkpoint.CUT_EVERY_S, checkpoint.AGAIN_AFTER_S = 0.5, 0.1
"""
"""As ``sitecustomize``: an erasure stands a minute at least, and what the journal and the log keep goes in minutes."""
MARKER = "xq-marker"
HER, NUMBER = f"{MARKER}-user", "+4917012398765"


async def begin(service: Service) -> None:
    """Start it with push, SMS, e-mail, webhooks, receipts of devices and metrics."""
    service.url = f"http://127.0.0.1:{reserved_port()}"
    made, urls = service.lab.directory, service.lab.urls
    ca = {"ca_file": str(made / "ca.pem")}
    (service.directory / "receipts.key").write_bytes(bytes(range(32)))
    sms = {"account_sid": ACCOUNT_SID, "auth_token_file": str(made / TOKEN_FILE), "from_number": "+15550100100"}
    email = {"host": "127.0.0.1", "port": int(urls["email"].rpartition(":")[2]), "sender": "news@example.com"}
    email |= {"username": "lab", "password_file": str(made / "smtp-password")}
    webhook = {"secret_file": str(made / "webhook.secret"), "status_url": f"{urls['webhook']}/told"}
    service.configure(
        workers=2,
        app={
            "sms": sms | ca | {"endpoint": urls["twilio"]},
            "email": email | ca,
            "webhook": webhook | ca | {"allow_endpoints": [urls["webhook"]]},
        },
        rest={"public_url": service.url},
        receipts={"secret_file": str(service.directory / "receipts.key")},
    )
    await service.start()


async def done(service: Service, method: str, path: str, body: Json | None = None) -> Json:
    """A call that succeeds."""
    status, answer = await service.ask(method, path, body)
    assert status < 300, (path, answer)
    return answer


async def live(service: Service) -> list[str]:
    """All that she has and is told, each in a way of its own; the ids of her notifications."""
    tokens = (await service.lab.ask("POST", "/tokens", {"platform": "android", "count": 2}))["tokens"]
    for name, token in zip(("phone", "old"), tokens, strict=True):
        device = {"platform": "android", "token": token, "app_version": MARKER}
        await done(service, "PUT", f"/v1/devices/{HER}/{MARKER}-{name}", device)
    await done(service, "DELETE", f"/v1/devices/{HER}/{MARKER}-old")
    await done(service, "PUT", f"/v1/users/{HER}/contacts/phone", {"address": NUMBER})
    await done(service, "PUT", f"/v1/users/{HER}/contacts/email", {"address": f"{MARKER}@example.com"})
    await service.lab.script(
        {"where": "fcm", "match": {"times": 2}, "do": {"answer": {"status": 503, "reason": "UNAVAILABLE"}}}
    )
    said = {"user_id": HER, "title": f"{MARKER} title", "body": f"{MARKER} body", "data": {"name": MARKER}}
    each: list[Json] = [{}, {"channels": ["sms", "email"]}, {"idempotency_key": MARKER, "collapse_key": MARKER}]
    ids = [(await done(service, "POST", "/v1/notifications", said | more))["id"] for more in each]
    for refused in ({"ttl": MARKER}, {"title": 5}, {MARKER: 1}):
        assert (await service.ask("POST", "/v1/notifications", said | refused))[0] == 400
    job = {"notification": {"title": "Hi {{name}}"}, "recipients": [{"user_id": HER, "name": MARKER}, "somebody"]}
    await done(service, "POST", "/v1/bulk", job | {"variables": {"name": "friend"}})
    await done(service, "PUT", f"/v1/users/{HER}/bulk-opt-out")
    pressed = {"kind": "action", "notification_id": ids[0], "device_id": f"{MARKER}-phone", "action": MARKER}
    status, answer = await service.ask("POST", "/v1/receipts", {"events": [pressed]})
    assert status < 500, answer
    later = said | {"scheduled_at": (datetime.now(UTC) + timedelta(hours=1)).isoformat()}
    await done(service, "POST", "/v1/notifications", later | {"idempotency_key": f"{MARKER}-late"})
    return [*ids, *tokens]


def files_of(service: Service) -> list[Path]:
    """Everything in its folder but what the lab writes, and what we wrote for it."""
    ours = {service.lab.directory, service.directory / "hook"}
    found = [path for path in service.directory.rglob("*") if path.is_file() and not ours & set(path.parents)]
    return [path for path in found if path.name != "lab.log"]


def knowing(service: Service, *names: str) -> dict[str, list[str]]:
    """The files that hold one of *names*, with those."""
    found = {}
    for path in files_of(service):
        text = path.read_bytes()
        if held := [name for name in names if name.encode() in text]:
            found[path.name] = held
    return found


async def test_no_file_of_a_running_service_knows_who_was_erased(tmp_path: Path) -> None:
    """Database, its free room and its log, what workers share, and what it said."""
    async with running(tmp_path, start=False, sitecustomize=SOON) as service:
        await begin(service)
        *ids, phone, old = await live(service)

        async def all_ended() -> bool:
            details = [(await service.ask("GET", f"/v1/notifications/{each}"))[1] for each in ids]
            return all(each["notification"]["status"] in ("sent", "delivered", "partial") for each in details)

        await until(all_ended, "the end of what she was told")
        secrets = (HER, MARKER, NUMBER, phone, old)
        assert set(knowing(service, *secrets)) <= {"waypost.db", "waypost.db-wal"}, "nothing of a person in other files"
        assert set().union(*knowing(service, *secrets).values()) == set(secrets)
        await done(service, "DELETE", f"/v1/users/{HER}")

        async def is_erased() -> bool:
            return bool(service.log("user.erased"))

        await until(is_erased, "the end of the erasure")

        async def is_forgotten() -> bool:
            return not knowing(service, *secrets)

        await until(is_forgotten, "that the sweep and the cut of the log come by", 30.0)
        assert len(files_of(service)) >= 5
