"""The feed in the app, through real processes: what was sent there is found there, once, whatever is killed."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from unittest.mock import ANY

import aiohttp
import pytest
from redis import Redis
from yarl import URL

from tests.journeys.harness import DEADLINE_S, Json, Service, running, until
from tests.shows import shows
from waypost.client.blocking import Client

pytestmark = pytest.mark.asyncio

USERS = 20
ROUNDS = 15


async def feed(service: Service, user: str, query: str = "") -> Json:
    status, answer = await service.ask("GET", f"/v1/users/{user}/feed{query}")
    assert status == 200, answer
    return answer


async def send(service: Service, user: str, channels: list[object], **fields: object) -> str:
    body = {"user_id": user, "title": "Your parcel is here", "channels": channels, **fields}
    status, answer = await service.ask("POST", "/v1/notifications", body)
    assert status == 202, answer
    return str(answer["id"])


async def shown(service: Service, user: str, count: int) -> list[str]:
    """Wait until a feed has so many entries; return their ids, newest first."""

    async def there() -> list[str] | None:
        ids = [each["id"] for each in (await feed(service, user, "?limit=500"))["items"]]
        return ids if len(ids) == count else None

    found: list[str] = await until(there, f"{count} entries of {user}")
    return found


async def status_of(service: Service, notification_id: str) -> dict[str, str]:
    _, answer = await service.ask("GET", f"/v1/notifications/{notification_id}")
    return {each["device_id"]: each["status"] for each in answer["receipts"]}


def listed(service: Service, user: str) -> str:
    """What `waypost feed` prints."""
    command = [sys.executable, "-m", "waypost.cli", "feed", user, "--url", service.url]
    environment = {**os.environ, "WAYPOST_API_KEY": service.key}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout


async def test_a_user_without_a_device_finds_it_in_the_feed_and_reading_is_its_receipt(tmp_path: Path) -> None:
    async with running(tmp_path, start=False, workers=1) as service:
        service.configure(app={"inapp": {}})
        await service.start()
        first = await send(
            service, "ann", ["inapp"], type="otp", data={"code": 7}, link="https://shop.example/7", tags=["code"]
        )
        second = await send(service, "ann", ["push", "inapp"])
        assert await shown(service, "ann", 2) == [second, first]
        tagged = await asyncio.to_thread(Client(service.url, service.key).feed, "ann", tag="code")
        assert [(each["id"], each["tags"]) for each in tagged["items"]] == [(first, ["code"])]
        answer = await feed(service, "ann", "?type=otp")
        (entry,) = answer["items"]
        assert (entry["id"], entry["data"], entry["link"]) == (first, {"code": 7}, "https://shop.example/7")
        assert (answer["unread"], answer["unseen"]) == (2, 2)
        assert await status_of(service, first) == {"inapp:feed": "sent"}
        marks = {"mark": "read", "ids": [first]}
        assert await service.ask("POST", "/v1/users/ann/feed/marks", marks) == (
            200,
            {"unread": 1, "unseen": 1, "changed": 1},
        )
        assert await status_of(service, first) == {"inapp:feed": "opened"}
        said = await asyncio.to_thread(listed, service, "ann")
        assert first in said and "1 unread" in said
        assert (await service.ask("POST", "/v1/users/ann/feed/marks", {"mark": "seen"}))[0] == 400


async def test_what_nobody_opened_in_the_feed_comes_as_a_push(tmp_path: Path) -> None:
    """The feed is a step like any other: opened in time, nothing follows it."""
    async with running(tmp_path, start=False, workers=1) as service:
        service.configure(app={"inapp": {}})
        await service.start()
        (token,) = (await service.lab.ask("POST", "/tokens", {"platform": "android", "count": 1}))["tokens"]
        for user in ("ann", "bob"):
            device = {"platform": "android", "token": token}
            assert (await service.ask("PUT", f"/v1/devices/{user}/app-{user}", device))[0] == 201
            (token,) = (await service.lab.ask("POST", "/tokens", {"platform": "android", "count": 1}))["tokens"]
        late = await send(service, "ann", [{"to": "inapp", "until": "opened", "for": "1s"}, "push"])
        read = await send(service, "bob", [{"to": "inapp", "until": "opened", "for": "1h"}, "push"])
        await shown(service, "bob", 1)
        await service.ask("POST", "/v1/users/bob/feed/marks", {"mark": "read", "until": read})

        async def pushed() -> bool:
            return (await status_of(service, late)).get("app-ann") == "sent"

        await until(pushed, "the push")
        assert await status_of(service, read) == {"inapp:feed": "opened", "app-bob": "cancelled"}


async def followed(
    service: Service, user: str, count: int, messages: list[Json], gateway: Service | None = None
) -> None:
    """Follow a feed until so many entries came, going on wherever the connection ends; at *gateway*, if given."""
    cursor = ""
    while sum(each["type"] == "entry" for each in messages) < count:
        with contextlib.suppress(aiohttp.ClientError):
            ticket = (await said(service, "POST", f"/v1/users/{user}/live-tickets"))["ticket"]
            url = f"{(gateway or service).url}/live?ticket={ticket}{cursor and f'&since={cursor}'}"
            async with aiohttp.ClientSession() as session, session.ws_connect(url, autoping=True) as socket:
                async for message in socket:
                    messages.append(json.loads(message.data))
                    cursor = messages[-1].get("cursor", cursor)
                    if sum(each["type"] == "entry" for each in messages) == count:
                        return


@shows("S2-11")
async def test_a_feed_is_followed_over_kill_9_without_a_gap_or_a_repeat(tmp_path: Path) -> None:
    """Each worker in turn, so whoever holds the connection dies, and whoever reads the journal."""
    async with running(tmp_path, start=False, workers=2) as service:
        service.configure(app={"inapp": {}}, feed={"ping_s": 0.5})
        await service.start()
        for more in ("G", "content-length: 3\r\n\r\nabc"):
            assert " 400 " in await first_line(service, more)
        messages: list[Json] = []
        follows = asyncio.create_task(followed(service, "ann", 90, messages))
        events: list[Json] = []
        follows_too = asyncio.create_task(asyncio.to_thread(followed_by_client, service, "ann", 90, events))
        await until(has_any(messages), "the greeting")
        await until(has_any(events), "the greeting of the event stream")
        sent = []
        for n in range(90):
            body = {"user_id": "ann", "title": f"Number {n}", "channels": ["inapp"], "idempotency_key": str(n)}
            sent.append(str((await said(service, "POST", "/v1/notifications", body))["id"]))
            if n % 30 == 15:
                await service.kill(service.worker_pids()[0])
        async with asyncio.timeout(DEADLINE_S):
            await follows
            await follows_too
        entries = [each["entry"]["id"] for each in messages if each["type"] == "entry"]
        assert entries == [each["entry"]["id"] for each in events if each["type"] == "entry"]
        assert sorted(entries) == sorted(sent)
        assert (messages[0]["type"], messages[0]["unread"], messages[-1]["unread"]) == ("hello", 0, 90)
        assert entries == list(reversed(await shown(service, "ann", 90)))


def followed_by_client(service: Service, user: str, count: int, messages: list[Json]) -> None:
    """Follow a feed by the client library until so many entries came."""
    client = Client(service.url, service.key)
    for message in client.follow(user):
        messages.append(message)
        if sum(each["type"] == "entry" for each in messages) == count:
            return


async def first_line(service: Service, more: str) -> str:
    """Ask for an event stream, with more behind the request than it may have; return the answer's first line."""
    ticket = (await said(service, "POST", "/v1/users/ann/live-tickets"))["ticket"]
    there = URL(service.url)
    assert there.host is not None and there.port is not None
    reader, writer = await asyncio.open_connection(there.host, there.port)
    head = f"GET /live?ticket={ticket} HTTP/1.1\r\nhost: {there.host}\r\naccept: text/event-stream\r\n"
    writer.write((head + ("" if "\r\n" in more else "\r\n") + more).encode())
    line = (await reader.readline()).decode()
    writer.close()
    return line


def has_any(messages: list[Json]) -> Callable[[], Awaitable[bool]]:
    """Whether something came."""

    async def has() -> bool:
        return bool(messages)

    return has


async def test_every_entry_is_there_once_after_kill_9(tmp_path: Path) -> None:
    """What was accepted is in its feed once, counts are those of the entries, and marks that were answered stay."""
    async with running(tmp_path, start=False, workers=2) as service:
        service.configure(app={"inapp": {}})
        await service.start()
        users = [f"user-{n}" for n in range(USERS)]
        halfway = asyncio.Event()
        written = asyncio.gather(*(writes(service, user, halfway) for user in users))
        await halfway.wait()
        for _ in range(2):
            await service.kill(service.worker_pids()[0])
        for user, (ids, read) in zip(users, await written, strict=True):
            assert sorted(await shown(service, user, ROUNDS)) == sorted(ids)
            answer = await feed(service, user, "?limit=500")
            unread = {each["id"] for each in answer["items"] if each["read_at"] is None}
            assert answer["unread"] == len(unread)
            assert not read & unread


async def writes(service: Service, user: str, halfway: asyncio.Event) -> tuple[list[str], set[str]]:
    """Send to a user's feed, reading the newest entry in between; return what was accepted, and what was read."""
    accepted, read = [], set()
    for n in range(ROUNDS):
        if n == ROUNDS // 2:
            halfway.set()
        body = {"user_id": user, "title": f"Number {n}", "channels": ["inapp"], "idempotency_key": f"{user}-{n}"}
        answer = await said(service, "POST", "/v1/notifications", body)
        accepted.append(str(answer["id"]))
        for entry in (await said(service, "GET", f"/v1/users/{user}/feed?limit=1"))["items"]:
            await said(service, "POST", f"/v1/users/{user}/feed/marks", {"mark": "read", "ids": [entry["id"]]})
            read.add(str(entry["id"]))
    return accepted, read


@shows("S2-09", "S2-12", "S3-71")
@pytest.mark.engines
async def test_a_feed_over_redis_and_postgres_is_followed_and_never_stale_over_kill_9(
    tmp_path: Path, postgres_url: str, redis_url: str
) -> None:
    """Workers find in Redis who holds whom, and read first pages there; one of them is killed."""
    shared: Json = {"app": {"inapp": {}}, "feed": {"ping_s": 0.5}, "redis": {"url": redis_url}, "cache": "redis"}
    async with running(tmp_path, start=False, workers=2) as service, contextlib.AsyncExitStack() as ended:
        service.configure(store={"url": postgres_url}, **shared)
        await service.make_key()
        await service.start()
        store = {"url": postgres_url, "run_dir": str(tmp_path / "gateway" / "run")}
        gateway = service.beside("gateway", workers=1, roles=["gateway"], store=store, **shared)
        ended.callback(gateway.end)
        await gateway.start()
        assert await gateway.ask("GET", "/v1/users/ann/feed") == (404, ANY)
        told: list[list[Json]] = [[], []]
        follows = [
            asyncio.create_task(followed(service, "ann", ROUNDS, messages, at))
            for messages, at in zip(told, (service, gateway), strict=True)
        ]
        for messages in told:
            await until(has_any(messages), "the greeting")
        accepted: list[str] = []
        read: set[str] = set()
        for n in range(ROUNDS):
            body = {"user_id": "ann", "title": f"Number {n}", "channels": ["inapp"], "idempotency_key": str(n)}
            accepted.append(str((await said(service, "POST", "/v1/notifications", body))["id"]))
            page = await said(service, "GET", "/v1/users/ann/feed")
            ids = [each["id"] for each in page["items"] if each["read_at"] is None]
            if ids:
                await said(service, "POST", "/v1/users/ann/feed/marks", {"mark": "read", "ids": ids})
                read.update(ids)
                for _ in range(3):
                    page = await said(service, "GET", "/v1/users/ann/feed")
                    assert all(each["read_at"] for each in page["items"] if each["id"] in ids), "what was confirmed"
                    assert page["unread"] <= len(accepted) - len(read), "more may have come, but not what was read"
            if n == ROUNDS // 2:
                await service.kill(service.worker_pids()[0])
        async with asyncio.timeout(DEADLINE_S):
            await asyncio.gather(*follows)
        for messages in told:
            entries = [each["entry"]["id"] for each in messages if each["type"] == "entry"]
            assert (len(entries), sorted(entries)) == (ROUNDS, sorted(accepted))
        async with service._session.get(service.url + "/metrics") as answer:
            assert 'waypost_cache_lookups_total{cache="feed",result="hit"}' in await answer.text()
        with Redis.from_url(redis_url) as client:
            mailboxes = {each.decode().partition("gateway:")[2] for each in client.keys("waypost:gateway:*")}
        assert len(mailboxes) >= 3, "each worker has one, and those of the killed end after a while"


async def said(service: Service, method: str, path: str, body: Json | None = None) -> Json:
    """Say it until it is answered: workers die."""

    async def answered() -> Json | None:
        status, answer = await service.ask(method, path, body)
        return answer if status in (200, 201, 202) else None

    answer: Json = await until(answered, path)
    return answer
