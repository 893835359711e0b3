"""Callers: users with devices, a bounded stream of submissions, and the ledger of every answer they got."""

from __future__ import annotations

import asyncio
import contextlib
import math
import random
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import aiohttp

from tests.journeys.harness import Json, Service, until

RETRY_PAUSE_S = 0.02
_DEVICES = (("ios",), ("android",), ("web",), ("ios", "android", "web"))


@dataclass
class Entry:
    """One notification that was answered 2xx."""

    id: str
    body: Json
    tokens: tuple[str, ...]

    @property
    def at_most_once(self) -> bool:
        """Whether its guarantee allows no copies."""
        return bool(self.body.get("guarantee") == "at_most_once")


@dataclass
class Ledger:
    """Everything that was answered 2xx, by id."""

    entries: dict[str, Entry] = field(default_factory=dict)
    refusals: dict[str, int] = field(default_factory=dict)
    """Answers by which nothing was accepted, by code."""

    def note(self, answer: Json, body: Json, tokens: tuple[str, ...]) -> Entry:
        """Keep what was promised."""
        return self.entries.setdefault(answer["id"], Entry(answer["id"], body, tokens))


class Audience:
    """Registered users: token lists by user id."""

    def __init__(self, service: Service) -> None:
        self.tokens: dict[str, tuple[str, ...]] = {}
        self._service = service

    async def register(
        self, count: int, platforms: tuple[tuple[str, ...], ...] = _DEVICES, prefix: str = "user"
    ) -> None:
        """Register *count* users, each with the next of the *platforms* combinations."""
        chosen = [platforms[n % len(platforms)] for n in range(count)]
        wanted = sum(each.count("web") for each in chosen)
        web = (await self._service.lab.ask("POST", "/subscriptions", {"count": max(wanted, 1)}))["subscriptions"]
        users = {f"{prefix}-{n}": each for n, each in enumerate(chosen)}
        await asyncio.gather(*(self._register(user, each, web) for user, each in users.items()))

    async def _register(self, user_id: str, platforms: tuple[str, ...], web: list[Json]) -> None:
        tokens: list[str] = []
        for platform in platforms:
            if platform == "web":
                subscription = web.pop()
                device = {"platform": "web", "token": subscription["endpoint"], "keys": subscription["keys"]}
            else:
                made = await self._service.lab.ask("POST", "/tokens", {"platform": platform})
                device = {"platform": platform, "token": made["tokens"][0]}
            status, answer = await self._service.ask("PUT", f"/v1/devices/{user_id}/{platform}", device)
            assert status in (200, 201), answer
            tokens.append(device["token"])
        self.tokens[user_id] = tuple(tokens)


class Load:
    """Submits notifications of every sort, at most *width* at once, until it has *limit* or is told to stop.

    What got no answer, or one that asks to come again, is said again in the same words until it is answered: so the
    ledger knows of everything that the service may have accepted.
    """

    def __init__(self, service: Service, audience: Audience, rng: random.Random, **always: str | None) -> None:
        """*always* are fields of every notification; None leaves a field out."""
        self._always = always
        self.ledger = Ledger()
        self._service = service
        self._audience = audience
        self.users = sorted(audience.tokens)
        self._rng = rng
        self._series = f"{rng.getrandbits(32):08x}"
        self._count = 0
        self._stopping = False
        self._grew = asyncio.Condition()

    def stop(self) -> None:
        """Submit nothing new; what is not answered yet is said until it is."""
        self._stopping = True

    async def run(self, width: int, limit: float = math.inf, pause_s: float = 0.0) -> None:
        """Submit; each caller rests *pause_s* between two, which bounds the rate."""

        async def caller() -> None:
            while not self._stopping and self._count < limit:
                await self.submit(self.compose())
                await asyncio.sleep(pause_s)  # the rate of the load

        async with asyncio.TaskGroup() as callers:
            for _ in range(width):
                callers.create_task(caller())

    async def grown(self, by: int) -> None:
        """Return when *by* more were answered."""
        wanted = len(self.ledger.entries) + by
        async with self._grew:
            await self._grew.wait_for(lambda: len(self.ledger.entries) >= wanted)

    def compose(self, **fields: object) -> Json:
        """A notification that nobody said before, of any sort."""
        self._count += 1
        rng, n = self._rng, self._count
        body: Json = {"user_id": rng.choice(self.users), "urgency": rng.choice(["critical", "high", "normal", "low"])}
        if rng.random() < 0.2:
            body |= {"kind": "silent", "data": {"n": n}}
        else:
            body |= {"title": f"News {n}", "body": "Something happened.", "data": {"n": n}}
        if rng.random() < 0.2:
            body["guarantee"] = "at_most_once"
        if rng.random() < 0.1:
            body["scheduled_at"] = (datetime.now(UTC) + timedelta(seconds=rng.uniform(0.5, 2))).isoformat()
        if rng.random() < 0.5:
            body["idempotency_key"] = f"{self._series}-{n}"
        else:
            body["dedup_window"] = 3_600
        return {name: value for name, value in (body | self._always | fields).items() if value is not None}

    def tokens_of(self, user_id: str) -> tuple[str, ...]:
        """The tokens of a user's devices."""
        return self._audience.tokens[user_id]

    async def submit(self, body: Json) -> Entry:
        """Say it until it is answered."""
        while True:
            status, answer = await self.said(body)
            if status in (200, 202):
                entry = self.ledger.note(answer, body, self._audience.tokens[body["user_id"]])
                async with self._grew:
                    self._grew.notify_all()
                return entry
            assert status in (0, 408, 429, 503) or answer["code"] == "in_progress", answer
            code = answer["code"]
            self.ledger.refusals[code] = self.ledger.refusals.get(code, 0) + 1
            await asyncio.sleep(RETRY_PAUSE_S)  # a caller that was refused rests before it asks again

    async def said(self, body: Json) -> tuple[int, Json]:
        """Say it once; status 0 is no answer."""
        try:
            return await self._service.ask("POST", "/v1/notifications", body, once=True)
        except (aiohttp.ClientError, OSError, TimeoutError):
            return 0, {"code": "no answer"}

    async def submit_together(self, bodies: list[Json]) -> list[Entry]:
        """One batch, said until it is answered; everything in it must be accepted."""

        async def answered() -> Json:
            status, answer = await self._service.ask("POST", "/v1/notifications/batch", {"notifications": bodies})
            if status == 503:
                return {}
            assert status in (200, 202) and not answer["refused"], answer
            return answer

        answer = await until(answered, "the batch is answered")
        said = zip(bodies, answer["results"], strict=True)
        return [self.ledger.note(each["notification"], body, self.tokens_of(body["user_id"])) for body, each in said]

    async def repeat(self, entry: Entry) -> None:
        """Say the same again: it must be known, under the same id."""
        again = await self.submit(entry.body)
        assert again is entry, f"{entry.id} was accepted again as {again.id}"

    def keyed(self, count: int) -> list[Entry]:
        """Some of what was said with an idempotency key."""
        known = [entry for entry in self.ledger.entries.values() if "idempotency_key" in entry.body]
        return self._rng.sample(known, min(count, len(known)))


@contextlib.asynccontextmanager
async def called(
    service: Service, rng: random.Random, *, users: int, width: int, pause_s: float = 0.03
) -> AsyncIterator[Load]:
    """*width* callers for new users during the block; at its end all that they said has been answered."""
    audience = Audience(service)
    await audience.register(users)
    load = Load(service, audience, rng)
    callers = asyncio.create_task(load.run(width, pause_s=pause_s))
    try:
        yield load
    except BaseException:
        callers.cancel()
        raise
    load.stop()
    await callers
