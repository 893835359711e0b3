"""Webhooks out, on real processes: a backend hears how its notifications fare, whatever dies meanwhile."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path

import pytest

from tests.hurry import HURRIED
from tests.journeys.harness import Json, Service, running, until
from tests.shows import shows

NAME = "webhook"
NEVER = f"""{HURRIED}
from waypost.channels.webhook import sender

sender.WRITTEN_BY_S = sender.ANSWER_BY_S = 3600.0
"""
"""As ``sitecustomize``. A receiver has an hour for its answer."""
TITLE = "Your code is 4711"


def serving(tmp_path: Path) -> AbstractAsyncContextManager[Service]:
    """A service that is configured later, when the lab's address is known."""
    return running(tmp_path, start=False, sitecustomize=HURRIED)


async def start(service: Service, **more: object) -> None:
    """Start with the lab's receiver as the app's own, and a device of a user."""
    made, url = service.lab.directory, service.lab.urls[NAME]
    webhook = {
        "secret_file": f"{made}/webhook.secret",
        "ca_file": f"{made}/ca.pem",
        "allow_endpoints": [url],
        "status_url": f"{url}/hooks/app",
        **more,
    }
    service.configure(workers=1, app={NAME: webhook})
    await service.start()
    (token,) = (await service.lab.ask("POST", "/tokens", {"platform": "ios", "count": 1}))["tokens"]
    status, answer = await service.ask("PUT", "/v1/devices/ann/phone", {"platform": "ios", "token": token})
    assert status == 201, answer


async def tell(service: Service, **more: object) -> str:
    """Send an OTP to the user."""
    status, answer = await service.ask("POST", "/v1/notifications", {"user_id": "ann", "title": TITLE, **more})
    assert status == 202, answer
    return str(answer["id"])


async def told(service: Service, path: str = "/hooks/app") -> list[Json]:
    """What a path of the receiver took, in order: it verified each."""
    found = (await service.lab.ask("GET", f"/received?gateway={NAME}&limit=1000"))["received"]
    return sorted((each for each in found if each["token"] == path and each["accepted"]), key=lambda it: it["seq"])


def bodies(requests: Sequence[Json]) -> list[Json]:
    """The JSON of each."""
    return [each["payload"] for each in requests]


async def has(service: Service, count: int, path: str = "/hooks/app") -> list[Json]:
    """Them, once there are so many."""
    found = await told(service, path)
    return found if len(found) >= count else []


async def is_final(service: Service, notification_id: str, status: str) -> bool:
    """Whether it reads so."""
    answer = (await service.ask("GET", f"/v1/notifications/{notification_id}"))[1]
    return bool(answer["notification"]["status"] == status)


@shows("S2-34", "S4-41", "S4-42")
@pytest.mark.asyncio
async def test_an_otp_delivered_via_push_is_heard_of_with_its_channel(tmp_path: Path) -> None:
    """S2-34, S4-41, S4-42: of each notification in order, signed, to the app's URL or the submission's."""
    async with serving(tmp_path) as service:
        await start(service)
        first = await tell(service)
        said = bodies(await until(partial(has, service, 2), "the events of the first"))
        assert [(each["type"], each["status"], each["channel"]) for each in said] == [
            ("delivery.status", "SENT", "apns"),
            ("notification.status", "SENT", "apns"),
        ]
        for body in said:
            assert {body["request_id"], body["notification_id"]} == {first}
            assert (body["client_id"], bool(body["message"])) == ("tests", True)
            assert TITLE not in str(body)
        own = f"{service.lab.urls[NAME]}/hooks/own"
        second = await tell(service, webhook_url=own)
        receipt = {"notification_id": second, "device_id": "phone", "event": "delivered"}
        await until(partial(has, service, 2, "/hooks/own"), "the events of the second")
        status, answer = await service.ask("POST", "/v1/receipts", {"receipts": [receipt]})
        assert status == 200, answer
        found = bodies(await until(partial(has, service, 4, "/hooks/own"), "the confirmation"))
        assert [(each["status"], each["channel"]) for each in found[2:]] == [("DELIVERED", "apns")] * 2
        assert len(await told(service)) == 2  # the first one's alone


@shows("S4-43", "S4-45", "S4-47", "S4-51")
@pytest.mark.asyncio
async def test_a_dead_endpoint_changes_nothing_and_is_tried_three_times(tmp_path: Path) -> None:
    """S4-43, S4-45, S4-47, S4-51: then it is given up, and the log has a line for each attempt."""
    async with serving(tmp_path) as service:
        await start(service, statuses=["sent"])
        await service.lab.script({"where": NAME, "do": {"answer": {"status": 500}}})
        sent = await tell(service)
        await until(partial(is_final, service, sent, "sent"), "the end of what is told of")

        async def attempts() -> list[Json]:
            lines = service.log("webhook.attempt")
            return lines if len(lines) >= 6 else []

        lines = await until(attempts, "three attempts of both events")
        by_id: dict[str, list[int]] = {}
        for each in lines:
            by_id.setdefault(each["webhook_id"], []).append(each["attempt"])
        assert list(by_id.values()) == [[1, 2, 3]] * 2
        assert {(each["outcome"], each["code"]) for each in lines} == {("unanswered", "http_500")}
        assert await service.is_sent(sent)


@pytest.mark.asyncio
async def test_an_endpoint_that_is_gone_is_told_nothing_more(tmp_path: Path) -> None:
    async with serving(tmp_path) as service:
        await start(service, statuses=["sent"])
        await service.lab.script({"where": NAME, "do": {"answer": {"status": 410}}})
        await tell(service)

        async def disabled() -> list[Json]:
            return service.log("webhook.disabled")

        await until(disabled, "the event")
        await service.lab.heal()
        other = f"{service.lab.urls[NAME]}/hooks/other"
        await tell(service)
        await tell(service, webhook_url=other)
        await until(partial(has, service, 2, "/hooks/other"), "what another URL is told afterwards")
        assert len(await told(service)) <= 1  # the second event of the first one was in line already


@shows("S4-50")
@pytest.mark.asyncio
async def test_kill_9_of_the_worker_loses_no_webhook(tmp_path: Path) -> None:
    """Killed while the events are on their way: each comes, and repeats have the id of the first."""
    async with serving(tmp_path) as service:
        await start(service)
        sent: list[str] = []
        for n in range(30):
            sent.append(await tell(service, title=f"News {n}"))
            if n in (10, 20):
                await until(partial(has, service, n), "events that are on their way")
                await service.kill(service.pid)  # a single worker is the service
                await service.start()

        async def all_of_them() -> list[Json]:
            requests = await told(service)
            said = bodies(requests)
            heard = {(each["notification_id"], each["type"]) for each in said}
            return requests if len(heard) == 60 else []

        requests = await until(all_of_them, "two events of each")
        said = bodies(requests)
        assert {each["notification_id"] for each in said} == set(sent)
        assert len({each["notification_id"] for each in requests}) == 60
        for each in sent:
            types = [it["type"] for it in said if it["notification_id"] == each]
            assert types.index("delivery.status") < types.index("notification.status")


@pytest.mark.asyncio
async def test_a_receiver_that_never_answers_delays_no_other_and_no_delivery(tmp_path: Path) -> None:
    """Its attempts last for an hour here: whatever waited for one of them would not come."""
    async with running(tmp_path, start=False, sitecustomize=NEVER) as service:
        url = service.lab.urls[NAME]
        slow = url.replace("127.0.0.1", "localhost")
        await start(service, allow_endpoints=[url, slow])
        await service.lab.script({"where": NAME, "match": {"token": "/hooks/slow"}, "do": {"black_hole": {}}})
        first = [{"user_id": "ann", "title": f"News {n}", "webhook_url": f"{slow}/hooks/slow"} for n in range(300)]
        status, answer = await service.ask("POST", "/v1/notifications/batch", {"notifications": first})
        assert status == 202, answer

        async def all_are_sent() -> bool:
            listed = (await service.ask("GET", "/v1/notifications?user_id=ann&status=sent&limit=500"))[1]
            return len(listed["items"]) == len(first)

        await until(all_are_sent, "the deliveries that the slow one is told of")
        other = await tell(service)
        said = bodies(await until(partial(has, service, 2), "what another one is told"))
        assert {each["notification_id"] for each in said} == {other}
        assert await told(service, "/hooks/slow") == []


@pytest.mark.asyncio
async def test_what_a_url_was_told_is_listed_and_told_again(tmp_path: Path) -> None:
    """What failed in a time, and one that it took: each has the id that it had. In batches, as it asks for."""
    async with serving(tmp_path) as service:
        await start(service, statuses=["sent"], status_batch=10, status_batch_wait_ms=10)
        await service.lab.script({"where": NAME, "do": {"answer": {"status": 404}}})
        sent = await tell(service)

        async def listed(status: str) -> list[Json]:
            found = (await service.ask("GET", f"/v1/webhooks/events?status={status}"))[1]["items"]
            return list(found) if len(found) == 2 else []

        failed = await until(partial(listed, "failed"), "both events, failed")
        assert {(each["code"], each["attempts"], each["notification_id"]) for each in failed} == {("http_404", 1, sent)}
        await service.lab.heal()
        since = failed[-1]["at"]
        assert await command(service, "webhooks", "replay", "--since", since) == {"replayed": 2, "skipped": 0}
        taken = await until(partial(listed, "sent"), "both events, taken")
        assert {each["id"] for each in taken} == {each["id"] for each in failed}
        assert await command(service, "webhooks", "replay", "--since", since) == {"replayed": 0, "skipped": 0}
        one = taken[0]["id"]
        assert await command(service, "webhooks", "replay", one, "--sent") == {"replayed": 1, "skipped": 0}
        assert await command(service, "webhooks", "replay", sent, "--sent") == {"replayed": 0, "skipped": 0}

        async def heard() -> list[str]:
            ids = [each["id"] for body in bodies(await told(service)) for each in body["events"]]
            return ids if len(ids) == 3 else []

        ids = await until(heard, "what was told again")
        assert sorted(ids) == sorted([*(each["webhook_id"] for each in taken), f"{one}-0"])


async def command(service: Service, *words: str) -> Json:
    """What a command of ours says."""
    said = [sys.executable, "-m", "waypost.cli", *words, "--url", service.url, "--json"]
    environment = {"WAYPOST_API_KEY": service.key, "PATH": ""}
    made = await asyncio.to_thread(subprocess.run, said, env=environment, check=True, capture_output=True, text=True)
    return dict(json.loads(made.stdout))
