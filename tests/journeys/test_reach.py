"""A refusal stops what it speaks of, and nothing else: a topic of Apple's, one subscription of a push service."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.hurry import PROBED_SOON
from tests.journeys.harness import Json, Service, running, until

TOPIC = "com.example.demo"
RETRIES = {"max_retries": 3, "delays_ms": [200]}
DAY_S = 86_400
CALL: Json = {"push_type": "voip", "data": {"call": "0"}, "urgency": "high", "ttl": DAY_S}


@pytest.mark.asyncio
async def test_a_refused_topic_keeps_no_other_waiting_and_is_sent_once_it_is_allowed(tmp_path: Path) -> None:
    """The certificate names no topic for calls: alerts go on, readiness names it, nothing is lost."""
    async with running(tmp_path, sitecustomize=PROBED_SOON, start=False) as service:
        apns = await _certified(service, TOPIC)
        service.configure(workers=1, app={"apns": apns})
        await service.start()
        alert, call = (await service.lab.ask("POST", "/tokens", {"platform": "ios", "count": 2}))["tokens"]
        await _register(service, "ann", {"platform": "ios", "token": alert})
        await _register(service, "caller", {"platform": "ios", "token": call, "token_use": "voip"})
        explained = (await service.ask("POST", "/v1/explain", {"user_id": "caller", **CALL}))[1]
        assert [each["scope"] for each in explained["targets"]] == [f"{TOPIC}.voip"]
        calls = [await _call(service, n) for n in range(2)]
        await until(partial(_said, service, "breaker.opened"), "the breaker of the topic")
        for n in range(3):
            told = await _tell(service, "ann", title=f"News {n}")
            await until(partial(_is, service, told, "sent"), "an alert beside it", 30)
        assert {(each["scope"], each["code"]) for each in service.log("breaker.opened")} == {
            (f"{TOPIC}.voip", "TopicDisallowed")
        }
        assert service.log("credential.denied") == []
        checks = (await service.ask("GET", "/health/ready"))[1]["checks"]
        assert checks["provider demo/apns"] == f"ok, but for {TOPIC}.voip (TopicDisallowed)"
        await until(partial(_probed_by_both, service, calls), "probes by one and the other")
        await _certified(service, TOPIC, f"{TOPIC}.voip")
        for each in calls:
            await until(partial(_is, service, each, "sent"), "the call, once the certificate allows it")


@pytest.mark.asyncio
async def test_one_refused_subscription_keeps_no_other_waiting_and_ends(tmp_path: Path) -> None:
    """A push service answers 403 without a word for it: it is tried a few times and is a dead letter."""
    async with running(tmp_path, workers=1, app={"retry": {"default": RETRIES}}) as service:
        made = (await service.lab.ask("POST", "/subscriptions", {"count": 2, "service": "windows"}))["subscriptions"]
        for user, one in zip(("well", "stale"), made, strict=True):
            await _register(service, user, {"platform": "web", "token": one["endpoint"], "keys": one["keys"]})
        refused = {"answer": {"status": 403, "body": " "}}
        await service.lab.script({"where": "webpush", "match": {"token": made[1]["token"]}, "do": refused})
        stale = await _tell(service, "stale", title="x", ttl=DAY_S)
        for n in range(5):
            told = await _tell(service, "well", title=f"News {n}")
            await until(partial(_is, service, told, "sent"), "a subscription beside it", 30)
        await until(partial(_is, service, stale, "failed"), "the end of the one that is refused")
        (receipt,) = await _receipts(service, stale)
        assert (receipt["code"], receipt["retries"], len(receipt["attempts"])) == ("http_403", 3, 4)
        assert service.log("breaker.opened", "credential.denied") == []


async def _certified(service: Service, *topics: str) -> Json:
    """Settings with a client certificate for *topics*; the file is replaced where there is one."""
    wanted = {"topics": topics, "environments": ["production"], "days": 30}
    made = await service.lab.ask("POST", "/apns/certificates", wanted)
    file = service.directory / "push.pem"
    file.write_text(made["certificate"])
    lab = service.lab
    return {
        "certificate_file": str(file),
        "topic": TOPIC,
        "endpoint": lab.urls["apns"],
        "ca_file": f"{lab.directory}/ca.pem",
    }


async def _register(service: Service, user: str, device: Json) -> None:
    status, answer = await service.ask("PUT", f"/v1/devices/{user}/d", device)
    assert status == 201, answer


async def _tell(service: Service, user: str, **content: Any) -> str:
    status, answer = await service.ask("POST", "/v1/notifications", {"user_id": user, **content})
    assert status == 202, answer
    return str(answer["id"])


async def _call(service: Service, n: int) -> str:
    return await _tell(service, "caller", **CALL | {"data": {"call": str(n)}})


async def _said(service: Service, event: str) -> list[Json]:
    return service.log(event)


async def _receipts(service: Service, notification_id: str) -> list[Json]:
    code, detail = await service.ask("GET", f"/v1/notifications/{notification_id}")
    assert code == 200, detail
    receipts: list[Json] = detail["receipts"]
    return receipts


async def _is(service: Service, notification_id: str, status: str) -> bool:
    return [each["status"] for each in await _receipts(service, notification_id)] == [status]


async def _probed_by_both(service: Service, calls: list[str]) -> bool:
    """Each was refused more than once: none makes every probe."""
    receipts = [each for call in calls for each in await _receipts(service, call)]
    return all(len(each["attempts"]) > 1 for each in receipts)
