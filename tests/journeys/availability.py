"""Availability as callers and devices see it: who was accepted in time, and what arrived in time."""

from __future__ import annotations

import asyncio
import math
import random
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from tests.journeys.harness import Json, Service
from tests.journeys.load import Audience, Entry, Load
from waypost.client.calls import RETRY_S
from waypost.lab.push_services import subscription_id

PATIENCE_S = 30.0
"""A submission counts as accepted that was so long after it was said first, at most.

Whoever is not answered says it again, in the same words. A worker that stands still is killed after 10 s, and may hold
the lock by which SQLite is written.
"""
ASK_S = 3.0
"""The longest that a caller waits for one answer."""
ARRIVES_S = 60.0
"""A delivery counts as made that reached its provider so long after it was accepted or due, at most."""
PAGE = 50


@dataclass
class Said:
    """A submission, and how it went."""

    began: float
    """When it was said first, by the callers' clock."""
    waited_s: float
    at_once: bool
    """Whether it was accepted when it was said first."""


@dataclass
class Available:
    """The shares that were available."""

    intake: float
    by_clients: float
    at_once: float
    dispatch: float
    at_most_once: float
    slowest: Said

    def row(self) -> dict[str, str]:
        """As columns of a table."""
        shares = {
            f"intake: accepted within {PATIENCE_S:.0f} s": self.intake,
            f"within {RETRY_S:.0f} s": self.by_clients,
            "when first said": self.at_once,
            f"dispatch: at_least_once, with its provider within {ARRIVES_S:.0f} s": self.dispatch,
            "at_most_once, the same": self.at_most_once,
        }
        return {name: f"{share:.3%}" for name, share in shares.items()}


class Callers(Load):
    """Callers who come at a rate, whatever became of those before: an outage is met by all who come meanwhile."""

    def __init__(self, service: Service, audience: Audience, rng: random.Random, **always: str | None) -> None:
        super().__init__(service, audience, rng, **always)
        self.waits: list[Said] = []
        self.accepted_at: dict[str, float] = {}
        """When each was accepted, by the callers' clock."""
        self._times: Counter[int] = Counter()
        """How often each was said."""

    async def come(self, per_s: float) -> None:
        """Come *per_s* a second until told to stop, and return when all are answered."""
        async with asyncio.TaskGroup() as callers:
            while not self._stopping:
                callers.create_task(self.submit(self.compose()))
                await asyncio.sleep(self._rng.expovariate(per_s))  # the rate of the load

    def compose(self, **fields: object) -> Json:
        """A notification with a key: a window by its content would be over with a clock that steps by an hour."""
        body = super().compose(**fields)
        body.pop("dedup_window", None)
        body["idempotency_key"] = f"{self._series}-{self._count}"
        return body

    async def submit(self, body: Json) -> Entry:
        """Say it until it is answered, and note how long that took."""
        began_s = time.monotonic()
        entry = await super().submit(body)
        waited_s = time.monotonic() - began_s
        self.waits.append(Said(time.time() - waited_s, waited_s, self._times[body["data"]["n"]] == 1))
        self.accepted_at.setdefault(entry.id, time.time())
        return entry

    async def said(self, body: Json) -> tuple[int, Json]:
        """Say it once, and wait for the answer no longer than a caller does."""
        self._times[body["data"]["n"]] += 1
        try:
            async with asyncio.timeout(ASK_S):
                return await super().said(body)
        except TimeoutError:
            return 0, {"code": "no answer"}


async def measured(service: Service, callers: Callers, waits: Sequence[Said]) -> Available:
    """Hold what callers were answered, *waits*, and what reached the lab, against the time that it took."""
    in_time: dict[bool, list[bool]] = {True: [], False: []}
    entries = list(callers.ledger.entries.values())
    for n in range(0, len(entries), PAGE):
        page = entries[n : n + PAGE]
        for entry, arrived in zip(page, await asyncio.gather(*(_arrived(service, each) for each in page)), strict=True):
            until = _due(callers, entry) + ARRIVES_S
            in_time[entry.at_most_once] += [arrived.get(_in_lab(token), math.inf) <= until for token in entry.tokens]
    return Available(
        intake=_share([each.waited_s <= PATIENCE_S for each in waits]),
        by_clients=_share([each.waited_s <= RETRY_S for each in waits]),
        at_once=_share([each.at_once for each in waits]),
        dispatch=_share(in_time[False]),
        at_most_once=_share(in_time[True]),
        slowest=max(waits, key=lambda each: each.waited_s),
    )


async def _arrived(service: Service, entry: Entry) -> dict[str, float]:
    """When each token's first copy arrived."""
    arrived: dict[str, float] = {}
    for push in await service.lab.arrivals(entry.id):
        arrived.setdefault(push["token"], push["at"])
    return arrived


def _in_lab(token: str) -> str:
    """What the lab calls it."""
    return subscription_id(token) if token.startswith("http") else token


def _due(callers: Callers, entry: Entry) -> float:
    """When it was to be sent: at its time, or once it was accepted."""
    scheduled = entry.body.get("scheduled_at")
    at = callers.accepted_at[entry.id]
    return at if scheduled is None else max(at, datetime.fromisoformat(scheduled).timestamp())


def _share(given: Sequence[bool]) -> float:
    return sum(given) / len(given)
