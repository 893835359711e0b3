"""A provider that is too slow: what a run against it came to, in pushes, copies, and time that was used."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass

from tests.journeys.balance import OPEN, compare_with_lab, final_stories
from tests.journeys.harness import Json, Service, until
from tests.journeys.load import Audience, Load

USERS = 100
BATCH = 500
QUEUE = 5_000


@dataclass(frozen=True)
class Run:
    """What became of so many notifications, each of them to one device of each platform."""

    accepted: int
    statuses: Counter[str]
    twice: Counter[str]
    """Pushes that a device got once more, by gateway."""
    most: int
    """Pushes of one notification to one device."""
    opened: int
    """Breakers, each time."""
    queues: dict[str, Json]
    """By gateway, with ``per_s``."""

    def took_of_ideal(self, gateway: str) -> float:
        """From the first turn to the last, by what a turn for each device takes and the time in which the lab stood."""
        queue = self.queues[gateway]
        return float(queue["lasted_s"] / (self.accepted / queue["per_s"] + queue["stood_s"]))

    def idle_share(self, gateway: str) -> float:
        """How much of that time *gateway* had nothing to do."""
        queue = self.queues[gateway]
        return float(queue["idle_s"] / queue["lasted_s"])

    def row(self) -> dict[str, object]:
        """As columns of the table of faults."""
        shown: dict[str, object] = {"accepted": self.accepted, **self.statuses, "lost": 0, "twice": self.twice.total()}
        for gateway, queue in self.queues.items():
            shown[f"{gateway}_took"] = f"{self.took_of_ideal(gateway):.2f} of ideal"
            shown[f"{gateway}_idle"] = f"{100 * self.idle_share(gateway):.0f} %"
            shown[f"{gateway}_most_waiting"] = queue["most_waiting"]
            shown[f"{gateway}_given_up"] = queue["given_up"]
            shown[f"{gateway}_turned_away"] = queue["turned_away"]
        return shown | {"most_copies_of_one": self.most, "breakers_opened": self.opened}


async def overloaded(
    service: Service, load: Load, per_s: dict[str, float], count: int, *, stop_s: float = 0.0, deadline_s: float = 300.0
) -> Run:
    """Accept *count* notifications at once, for gateways with these paces, and wait for the end of all.

    With *stop_s* the lab stands still for so long once a gateway is in the middle of its work.
    """
    lab = service.lab
    await lab.script(
        *({"where": name, "do": {"pace": {"per_s": pace, "queue": QUEUE}}} for name, pace in per_s.items())
    )
    users = load.users
    bodies = [{"user_id": users[n % len(users)], "title": f"News {n}", "body": "It happened."} for n in range(count)]
    batches = [bodies[n : n + BATCH] for n in range(0, count, BATCH)]
    await asyncio.gather(*(load.submit_together(batch) for batch in batches))
    if stop_s:
        await until(lambda: _taken(service, per_s, count / 2, any), "half of it is taken", deadline_s)
        async with stopped(service):
            await asyncio.sleep(stop_s)  # what is tried is that time passes
    await until(lambda: _taken(service, per_s, count, all), "each device was pushed to", deadline_s)
    await until(lambda: _none_open(service), "everything has ended", deadline_s)
    details = await final_stories(service, load.ledger)
    await compare_with_lab(service, list(load.ledger.entries.values()), details)
    return await _counted(service, per_s, Counter(detail["status"] for detail in details.values()))


async def audience_of(service: Service, *platforms: str) -> Audience:
    """Users with a device of each of *platforms*."""
    audience = Audience(service)
    await audience.register(USERS, (platforms,))
    return audience


@contextlib.asynccontextmanager
async def stopped(service: Service) -> AsyncIterator[None]:
    """The lab's process stands still (SIGSTOP) during the block."""
    os.kill(service.lab.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(service.lab.pid, signal.SIGCONT)


async def _taken(
    service: Service, per_s: dict[str, float], least: float, where: Callable[[Iterable[bool]], bool]
) -> bool:
    queues = await service.lab.ask("GET", "/queues")
    return where(queues[gateway]["taken"] >= least for gateway in per_s)


async def _none_open(service: Service) -> bool:
    """Whether nothing is open just now, asked for cheaply."""
    for status in OPEN:
        _, page = await service.ask("GET", f"/v1/notifications?limit=1&status={status}")
        if page["items"]:
            return False
    return True


async def _counted(service: Service, per_s: dict[str, float], statuses: Counter[str]) -> Run:
    counts = await service.lab.ask("GET", "/counts")
    twice = Counter({gateway: counts[gateway]["duplicates"] for gateway in per_s})
    copies = await service.lab.copies()
    most = max(pushed for tokens in copies.values() for pushed in tokens.values())
    queues = await service.lab.ask("GET", "/queues")
    return Run(
        accepted=statuses.total(), statuses=statuses, twice=twice, most=most,
        opened=len(service.log("breaker.opened")),
        queues={name: queues[name] | {"per_s": pace} for name, pace in per_s.items()},
    )  # fmt: skip
