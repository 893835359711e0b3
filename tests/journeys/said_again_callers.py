"""Callers who say a request until they are answered, through any door, and what they were told."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import aiohttp
import grpc
from google.protobuf import json_format

from tests.journeys.harness import Json, Service, until
from tests.journeys.said_again import Said
from waypost.v1 import notifications_pb2 as pb
from waypost.v1.notifications_pb2_grpc import NotificationsStub

WIDTH = 12
IN_A_BATCH = 10
PATHS = {"rest": "/v1/notifications", "batch": "/v1/notifications/batch", "forget": "/v1/dedup/forget"}
AGAIN = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED)
CHANNELS = 4
"""To each service; each ends at one of its processes."""
OPTIONS = [
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 100),
]


@dataclass(frozen=True)
class Answer:
    """What came back: `new`, `repeat`, `conflict` or `forgotten`."""

    kind: str
    id: str = ""
    """Of the notification that it is, or was the first time."""
    forgotten: int = 0


@dataclass
class Callers:
    """Any of *services* will do; *keys* are those of each caller."""

    services: Sequence[Service]
    keys: dict[str, str]
    rng: random.Random
    session: aiohttp.ClientSession
    channels: Sequence[grpc.aio.Channel]
    answers: dict[int, Answer] = field(default_factory=dict)
    """By the place of the request."""
    _grown: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def say(self, moment: Sequence[tuple[int, Said]]) -> None:
        """All of one moment, *WIDTH* at once; returns when each is answered."""
        room = asyncio.Semaphore(WIDTH)

        async def answered(together: list[tuple[int, Said]]) -> None:
            async with room:
                found = await until(partial(self._answers, [said for _, said in together]), f"an answer to {together}")
            async with self._grown:
                self.answers |= zip((n for n, _ in together), found, strict=True)
                self._grown.notify_all()

        groups = _groups(moment)
        self.rng.shuffle(groups)
        await asyncio.gather(*map(answered, groups))

    async def heard(self, count: int) -> None:
        """Return when so many requests were answered, of all moments."""
        async with self._grown:
            await self._grown.wait_for(lambda: len(self.answers) >= count)

    async def _answers(self, together: list[Said]) -> list[Answer] | None:
        """One for each; None where it has to be said again."""
        service, said = self.rng.choice(self.services), together[0]
        if said.door == "grpc":
            return await _by_grpc(self.rng.choice(self.channels), self.keys[said.caller], said.body)
        body = {"notifications": [each.body for each in together]} if said.door == "batch" else said.body
        headers = {"authorization": f"Bearer {self.keys[said.caller]}"}
        try:
            async with self.session.post(service.url + PATHS[said.door], json=body, headers=headers) as response:
                status, answer = response.status, await response.json()
        except (aiohttp.ClientError, OSError, TimeoutError):
            return None
        if status == 503:
            return None
        if said.door == "forget":
            return [Answer("forgotten", forgotten=answer["forgotten"])]
        return [_of_item(each) for each in answer["results"]] if said.door == "batch" else [_of_one(status, answer)]


@contextlib.asynccontextmanager
async def calling(services: Sequence[Service], keys: dict[str, str], rng: random.Random) -> AsyncIterator[Callers]:
    """Callers with connections of their own."""
    async with contextlib.AsyncExitStack() as opened:
        session = await opened.enter_async_context(aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=30)))
        channels = [
            await opened.enter_async_context(grpc.aio.insecure_channel(service.grpc, options=OPTIONS))
            for service in services
            for _ in range(CHANNELS)
        ]
        yield Callers(services, keys, rng, session, channels)


def _groups(moment: Sequence[tuple[int, Said]]) -> list[list[tuple[int, Said]]]:
    """What is said in one request."""
    batches: dict[str, list[tuple[int, Said]]] = {}
    groups = []
    for each in moment:
        if each[1].door == "batch":
            batches.setdefault(each[1].caller, []).append(each)
        else:
            groups.append([each])
    for batch in batches.values():
        groups += [batch[place : place + IN_A_BATCH] for place in range(0, len(batch), IN_A_BATCH)]
    return groups


def _of_one(status: int, answer: Json) -> Answer:
    if status == 409:
        assert answer["code"] == "idempotency_conflict", answer
        return _conflict(answer["detail"])
    assert status == (200 if answer["deduplicated"] else 202), answer
    return _taken(answer["id"], answer["deduplicated"])


def _of_item(result: Json) -> Answer:
    if "error" in result:
        assert result["error"]["code"] == "idempotency_conflict", result
        return _conflict(result["error"]["detail"])
    return _taken(result["notification"]["id"], result["notification"]["deduplicated"])


async def _by_grpc(channel: grpc.aio.Channel, key: str, body: Json) -> list[Answer] | None:
    stub: Any = NotificationsStub(channel)
    message = json_format.ParseDict(body, pb.Submission())
    try:
        taken = await stub.Submit(message, metadata=[("authorization", f"Bearer {key}")])
    except grpc.aio.AioRpcError as error:
        if error.code() in AGAIN:
            return None
        if error.code() is not grpc.StatusCode.ALREADY_EXISTS:
            raise
        return [_conflict(error.details() or "")]
    return [_taken(taken.id, taken.deduplicated)]


def _taken(id_: str, deduplicated: bool) -> Answer:
    return Answer("repeat" if deduplicated else "new", id_)


def _conflict(text: str) -> Answer:
    """The id is the last word."""
    return Answer("conflict", text.rpartition(" ")[2])
