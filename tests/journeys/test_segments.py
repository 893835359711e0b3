"""From a file of users to who opened what: topics, segments and bulk sends to them, by real processes."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.journeys.harness import Json, Service, running, until
from tests.journeys.processes import environment_of_a_service
from tests.shows import shows

USERS = """\
user_id,locale,plan,age:number
ann,de-CH,premium,34
bob,de,premium,17
cat,fr,free,51
dan,fr,free,
"""
GROWN = {"and": [{"attribute": {"name": "plan", "is": "premium"}}, {"attribute": {"name": "age", "at_least": 18}}]}
OPENED = {"event": {"name": "opened", "within_days": 7}}


@shows("S3-122")
@pytest.mark.asyncio
async def test_a_segment_finds_who_opened_what_a_topic_was_told(tmp_path: Path) -> None:
    async with running(tmp_path, workers=1, analytics={"enabled": True}) as service:
        users, said = tmp_path / "users.csv", tmp_path / "filter.json"
        users.write_text(USERS)
        said.write_text(json.dumps(GROWN))
        assert await cli(service, "users", "import", str(users)) == {"users": 4, "faulty": 0, "faults": []}
        await cli(service, "segments", "put", "grown", "--filter", str(said))
        assert (await cli(service, "segments", "preview", "grown"))["examples"] == ["ann"]
        assert [each["name"] for each in (await cli(service, "segments", "list"))["items"]] == ["grown"]
        await devices(service, "ann", "bob", "cat", "dan")
        await service.ask("PUT", "/v1/topics/news", {})
        await service.ask("POST", "/v1/topics/news/members", {"add": ["ann", "bob", "cat"]})

        told = await sent_to(service, {"topic": "news"})
        assert told.keys() == {"ann", "bob", "cat"}
        opened = [{"event": "opened", "notification_id": told[user], "device_id": "phone"} for user in ("ann", "cat")]
        status, _ = await service.ask("POST", "/v1/receipts", {"receipts": opened})
        assert status == 200

        async def tracked() -> Any:
            _, preview = await service.ask("POST", "/v1/segments/preview", {"filter": OPENED})
            return preview["examples"] == ["ann", "cat"]

        await until(tracked, "what was opened is tracked")
        assert (await sent_to(service, {"segment": "grown"})).keys() == {"ann"}
        lapsed = {"and": [{"topic": "news"}, {"not": OPENED}]}
        assert (await sent_to(service, {"filter": lapsed})).keys() == {"bob"}
        await cli(service, "segments", "delete", "grown")
        assert (await cli(service, "segments", "list"))["items"] == []


async def devices(service: Service, *users: str) -> None:
    """Register a phone for each of *users*."""
    made = await service.lab.ask("POST", "/tokens", {"platform": "android", "count": len(users)})
    for user, token in zip(users, made["tokens"], strict=True):
        status, _ = await service.ask("PUT", f"/v1/devices/{user}/phone", {"platform": "android", "token": token})
        assert status == 201


async def sent_to(service: Service, to: Json) -> dict[str, str]:
    """Send in bulk, and give the notification of each user whose phone the provider reached."""
    _, job = await service.ask("POST", "/v1/bulk", {"notification": {"title": "Hello"}, "to": to})

    async def finished() -> Any:
        _, now = await service.ask("GET", f"/v1/bulk/{job['id']}")
        return now["state"] == "finished" and now

    ended = await until(finished, f"the job to {to} ends")
    found: dict[str, str] = {}
    for user in ("ann", "bob", "cat", "dan"):
        status, told = await service.ask("GET", f"/v1/bulk/{job['id']}/recipients/{user}")
        if status == 200:
            assert len(await service.lab.arrivals(told["notification_id"])) == 1
            found[user] = told["notification_id"]
    assert ended["counts"] == {"sent": len(found)}
    return found


async def cli(service: Service, *words: str) -> Json:
    """What a command says as JSON."""
    command = [sys.executable, "-m", "waypost.cli", *words, "--json", "--url", service.url]
    environment = {**environment_of_a_service(None), "WAYPOST_API_KEY": service.key}
    done = await asyncio.to_thread(subprocess.run, command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    answer: Json = json.loads(done.stdout)
    return answer
