"""Callers of other APIs against a served Waypost on SQLite: the intake of S1, and all seven calls of S3."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import subprocess
import sys
from pathlib import Path

import aiohttp
import pytest

from tests.journeys.harness import Json, Service, running, until
from tests.shows import shows

pytestmark = pytest.mark.asyncio

PAGE = Path(__file__).parents[2] / "docs" / "api.md"
REGISTERED = "android-token-of-ann"


async def test_the_examples_of_how_to_send_do(tmp_path: Path) -> None:
    """Each block of the page is run as it stands; the history has one notification of each."""
    blocks = re.findall(r"```(sh|python)\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert [language for language, _ in blocks] == ["sh", "sh", "sh", "python"]
    async with running(tmp_path, workers=1) as service:
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        environment = os.environ | {"WAYPOST_URL": service.url, "WAYPOST_API_KEY": service.key, "PATH": path}
        for language, text in blocks:
            program = [sys.executable, "-c", text] if language == "python" else ["bash", "-ec", text]
            run = await asyncio.create_subprocess_exec(
                *program, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
            )
            said, _ = await run.communicate()
            assert run.returncode == 0, said.decode()
        _, found = await service.ask("GET", "/v1/notifications?user_id=user-1")
        assert len(found["items"]) == len(blocks)


@shows("S1-03", "S3-17", "S3-22", "S3-27")
async def test_the_callers_of_s1_and_s3_keep_their_calls(tmp_path: Path) -> None:
    async with running(tmp_path, workers=1) as service, _Ann(service) as ann:
        await _token_is_registered(ann)
        notified = await _notified(service)
        await _history(service, ann, notified)
        await _marks_outlive_a_restart(service, ann, notified)


class _Ann:
    """The backend of S3's clients, where Ann is logged in."""

    def __init__(self, service: Service) -> None:
        self._service = service

    async def __aenter__(self) -> _Ann:
        headers = {"authorization": f"Bearer {self._service.key}", "X-Waypost-User": "ann"}
        self._session = aiohttp.ClientSession(headers=headers)
        return self

    async def __aexit__(self, *error: object) -> None:
        with contextlib.suppress(aiohttp.ClientError):
            await self._session.close()

    async def ask(self, method: str, path: str, body: Json | None = None) -> tuple[int, Json]:
        """One call: status and body."""
        async with self._session.request(method, f"{self._service.url}/api{path}", json=body) as answer:
            said: Json = await answer.json()
            return answer.status, said

    async def data(self, method: str, path: str, body: Json | None = None) -> Json:
        """What a call that succeeds says."""
        status, said = await self.ask(method, path, body)
        assert status in (200, 201) and said["success"], said
        data: Json = said["data"]
        return data


async def _token_is_registered(ann: _Ann) -> None:
    token = {"token": REGISTERED, "platform": "android", "device_info": {"app_version": "1.4.2"}}
    status, said = await ann.ask("POST", "/tokens", token)
    assert (status, said["data"]["platform"]) == (201, "android")


async def _notified(service: Service) -> str:
    """S1: taken once, sent once, said twice."""
    told = {"user_id": "ann", "title": "Your code", "body": "1234"}
    status, first = await service.ask("POST", "/v1/notify", told)
    assert (status, first["status"], first["deduplicated"]) == (202, "queued", False)
    notification_id: str = first["notification_id"]
    await until(lambda: service.is_sent(notification_id), "the notification of S1 sent")
    assert len(await service.lab.arrivals(notification_id)) == 1
    status, again = await service.ask("POST", "/v1/notify", told)
    assert (status, again) == (200, {"notification_id": notification_id, "status": "completed", "deduplicated": True})
    _, found = await service.ask("GET", f"/v1/notifications/{notification_id}?words=notify")
    assert found["words"] == {"status": "completed", "receipts": ["sent"]}
    return notification_id


async def _history(service: Service, ann: _Ann, notified: str) -> None:
    """S3: created, delivered, listed by pages, filtered."""
    asked = {"user_id": "ann", "title": "Sale\x00", "body": "Only today.", "type": "promotion", "priority": "high"}
    made = await ann.data("POST", "/notifications", asked)
    await until(lambda: service.is_sent(made["id"]), "the notification of S3 sent")
    assert len(await service.lab.arrivals(made["id"])) == 1
    status, page = await ann.ask("GET", "/notifications?page=1&limit=1")
    assert (status, [row["id"] for row in page["data"]]) == (200, [made["id"]])
    assert page["pagination"] == {"page": 1, "limit": 1, "total": 2, "has_more": True}
    (row,) = page["data"]
    assert (row["title"], row["status"], row["type"], row["priority"]) == ("Sale", "sent", "promotion", "high")
    assert row["fcm_message_id"] and row["sent_at"]
    _, filtered = await ann.ask("GET", "/notifications?status=sent&type=general")
    assert [each["id"] for each in filtered["data"]] == [notified]


async def _marks_outlive_a_restart(service: Service, ann: _Ann, notified: str) -> None:
    read = await ann.data("PATCH", f"/notifications/{notified}/read")
    assert read["read_at"]
    service.end()
    await service.start()
    assert await ann.data("PATCH", f"/notifications/{notified}/read") == read
    await ann.data("DELETE", f"/notifications/{notified}")
    status, refused = await ann.ask("GET", f"/notifications/{notified}")
    assert (status, refused["success"], refused["error"]["code"]) == (404, False, "not_found")
    _, page = await ann.ask("GET", "/notifications")
    assert (page["pagination"]["total"], notified in [row["id"] for row in page["data"]]) == (1, False)
    assert (await ann.data("DELETE", f"/tokens/{REGISTERED}"))["token"] == REGISTERED
    _, devices = await service.ask("GET", "/v1/devices/ann?inactive=true")
    assert [device["active"] for device in devices["items"]] == [False]
