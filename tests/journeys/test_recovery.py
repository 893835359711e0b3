"""Recovery on real processes: what nobody moves is healed or an alert; a second record in Redis is kept beside it."""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.hurry import HURRIED
from tests.journeys.harness import Json, Service, running, until
from tests.shows import shows
from waypost.client.blocking import Client
from waypost.domain.ids import parse_id
from waypost.stores.redis.settings import RedisSettings
from waypost.stores.redis.wire import SinglePrimary
from waypost.telemetry import Silent

pytestmark = pytest.mark.asyncio
SOON = {"poll_s": 0.3, "processing_stuck_s": 0.5, "pending_stuck_s": 0.5, "auto_retry": False}
RESTS = {"retry": {"default": {"max_retries": 5, "base_ms": 600_000, "cap_ms": 600_000}}}
"""A retry that a test does not wait for."""
DIES = """
import os, signal
from waypost.stores.redis.sending_records import RedisSendingRecords

note = RedisSendingRecords.note

async def dying(self, came):
    if {after}:
        await note(self, came)
    try:
        os.close(os.open({flag!r}, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return await note(self, came)
    os.kill(os.getpid(), signal.SIGKILL)

RedisSendingRecords.note = dying
"""


async def registered(service: Service) -> None:
    """A user with a phone."""
    (token,) = (await service.lab.ask("POST", "/tokens", {"platform": "ios", "count": 1}))["tokens"]
    status, answer = await service.ask("PUT", "/v1/devices/ann/phone", {"platform": "ios", "token": token})
    assert status == 201, answer


async def told(service: Service, title: str) -> str:
    """A notification that was accepted."""
    status, answer = await service.ask("POST", "/v1/notifications", {"user_id": "ann", "title": title})
    assert status == 202, answer
    return str(answer["id"])


async def story(service: Service, made: str) -> Json:
    """All that is known of a notification."""
    return (await service.ask("GET", f"/v1/notifications/{made}"))[1]


async def reads(service: Service, made: str, status: str) -> bool:
    """Whether it has that status."""
    return bool((await story(service, made))["notification"]["status"] == status)


async def alerts(service: Service, *arguments: str) -> Any:
    """What ``waypost alerts`` prints as JSON."""
    command = [sys.executable, "-m", "waypost.cli", "alerts", *arguments, "--url", service.url, "--json"]
    given = os.environ | {"WAYPOST_API_KEY": service.key}
    done = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, check=False, env=given)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


async def about(service: Service, count: int, *arguments: str) -> dict[str, Json]:
    """The alerts by notification, once there are so many."""
    found = {each["notification_id"]: each for each in (await alerts(service, "list", *arguments))["items"]}
    return found if len(found) == count else {}


async def tried(service: Service, title: str) -> str:
    """A notification that was refused once."""
    made = await told(service, title)

    async def was_tried() -> bool:
        receipts = (await story(service, made))["receipts"]
        return bool(receipts and receipts[0]["retries"] == 1)

    await until(was_tried, "its first attempt")
    return made


def abandon(service: Service, made: str) -> None:
    """Let nobody ever find its next attempt due; nothing of ours leaves a row so."""
    with sqlite3.connect(service.store_path, timeout=10) as connection:
        sql = "UPDATE receipt SET due_at = NULL, parked = NULL WHERE notification_id = ?"
        assert connection.execute(sql, (parse_id(made),)).rowcount == 1


async def say_delivered(redis_url: str, made: str) -> None:
    """Let its record, which says that it failed, say that it was delivered."""
    redis = SinglePrimary(RedisSettings(url=redis_url), Silent())
    await redis.start()
    key = f"idempotency:{made}"
    (before,) = await redis.execute([("GET", key)])
    assert json.loads(before)["status"] == "failed"
    record = json.dumps({"status": "delivered", "retry_count": 1, "updated_at": 1_800_000_000_000})
    await redis.execute([("SET", key, record)])
    await redis.stop()


async def webhooks(service: Service, made: str, count: int) -> list[str]:
    """The statuses that the app's webhook was told of a notification, once they are so many."""
    found = (await service.lab.ask("GET", "/received?gateway=webhook&limit=1000"))["received"]
    bodies = [each["payload"] for each in found if each["accepted"]]
    said = [each["status"] for each in bodies if each["notification_id"] == made]
    return said if len(said) >= count else []


@shows("S4-52", "S4-56", "S4-57", "S4-59", "S4-60", "S4-61", "S4-62", "S4-63")
async def test_what_nobody_moves_is_healed_or_an_alert_that_operators_end(tmp_path: Path, redis_url: str) -> None:
    """S4-53, 56, 57, 59, 62 to 64 with two workers: a ghost is sent, one is retried, one is resolved."""
    async with running(tmp_path, start=False, sitecustomize=HURRIED) as service:
        hook = {
            "secret_file": f"{service.lab.directory}/webhook.secret",
            "ca_file": f"{service.lab.directory}/ca.pem",
            "allow_endpoints": [service.lab.urls["webhook"]],
            "status_url": f"{service.lab.urls['webhook']}/hooks/app",
        }
        recovery = {**SOON, "second_record": True, "processing_stuck_s": 2.0, "pending_stuck_s": 60}
        service.configure(
            workers=2, app={"webhook": hook, **RESTS}, redis={"url": redis_url}, recovery=recovery, profile="simplens"
        )
        await service.start()
        await registered(service)
        await service.lab.script({"where": "apns", "do": {"answer": {"status": 500}}})
        ghost, retried, resolved = [await tried(service, title) for title in ("ghost", "retry", "resolve")]
        await service.lab.heal()
        await say_delivered(redis_url, ghost)
        for each in (ghost, retried, resolved):
            abandon(service, each)

        await until(partial(reads, service, ghost, "sent"), "the ghost's end")
        assert await service.lab.arrivals(ghost) == []
        said = await until(partial(webhooks, service, ghost, 2), "what its webhook is told")
        assert said == ["SENT", "SENT"]
        found = await until(partial(about, service, 2, "--open"), "the alerts of both others")
        assert found.keys() == {retried, resolved}
        for alert in found.values():
            assert (alert["alert_type"], alert["db_status"], alert["redis_status"]) == (
                "stuck_processing", "processing", "failed",
            )  # fmt: skip
            assert (alert["resolved"], alert["retry_count"]) == (False, 1)

        await alerts(service, "retry", retried)
        await until(partial(reads, service, retried, "sent"), "the end of what was retried")
        assert len(await service.lab.arrivals(retried)) == 1
        await alerts(service, "resolve", resolved)
        assert await reads(service, resolved, "failed")
        said = await until(partial(webhooks, service, resolved, 2), "what its webhook is told")
        assert said == ["FAILED", "FAILED"]
        ended = await about(service, 2, "--resolved")
        assert {each: ended[each]["how"] for each in ended} == {retried: "retried", resolved: "resolved"}
        with Client(service.url, service.key) as client:
            acts = {each["act"]: each["subject"] for each in client.audit()["items"]}
        assert (acts["alert.retried"], acts["alert.resolved"]) == (retried, resolved)
        raised = [each["notification_id"] for each in service.log("alert.raised")]
        assert sorted(raised) == sorted((retried, resolved))


@shows("S4-54", "S4-64", "S4-66")
async def test_what_nobody_delivers_is_an_alert_until_somebody_does(tmp_path: Path) -> None:
    """S4-54, S4-64: the process that delivers is gone; the alert closes itself once one is back."""
    async with running(tmp_path, start=False, sitecustomize=HURRIED) as service:
        service.configure(workers=1, recovery=SOON, roles=["api", "sweep"])
        await service.start()
        await registered(service)
        made = await told(service, "waits")
        (alert,) = (await until(partial(about, service, 1, "--open"), "the alert")).values()
        assert (alert["alert_type"], alert["db_status"], alert["redis_status"]) == ("orphaned_pending", "pending", None)
        await service.kill(service.pid)
        service.configure(workers=1, recovery=SOON)
        await service.start()
        (alert,) = (await until(partial(about, service, 1, "--resolved"), "the end of the alert")).values()
        assert (alert["how"], await reads(service, made, "sent")) == ("ended", True)
        assert len(await service.lab.arrivals(made)) == 1


@shows("S4-36", "S4-39")
@pytest.mark.parametrize(("after", "copies"), [(True, 1), (False, 2)])
async def test_a_worker_that_dies_beside_its_record_loses_nothing(
    after: bool, copies: int, tmp_path: Path, redis_url: str
) -> None:
    """S4-36, S4-39: killed after the record says delivered, it is not sent again; before, once the lock is over."""
    sabotage = DIES.format(after=after, flag=str(tmp_path / "died"))
    recovery = {"second_record": True, "lock_ttl_s": 2}
    settings: Json = {"workers": 2, "redis": {"url": redis_url}, "recovery": recovery}
    async with running(tmp_path, sitecustomize=sabotage, **settings) as service:
        await registered(service)
        made = await told(service, "News")
        await until(partial(reads, service, made, "sent"), "its end")
        assert len(service.log("worker.died")) == 1
        assert len(await service.lab.arrivals(made)) == copies
