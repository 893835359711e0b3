"""A release with many apps: each condition is a search on the event loop; it asks for some, and in turn for all."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import pytest

from tests.contract.bench import Bench, notification
from tests.contract.stores import MemoryUnderTest
from waypost.adapters.in_process.limiter import MemoryLimiter
from waypost.domain import settlement
from waypost.domain.breaker import BreakerRules
from waypost.domain.channel import Channel
from waypost.domain.credential import CredentialId
from waypost.domain.ids import AppId
from waypost.domain.limits import Rate, TokenBucket
from waypost.domain.notification import Lane
from waypost.domain.time import SECOND_MS, Instant
from waypost.ports.sender import Capabilities
from waypost.runtime.gates import Gates
from waypost.runtime.parked import ParkedWork
from waypost.runtime.rates import RateGate
from waypost.telemetry import Silent

pytestmark = pytest.mark.asyncio

APPS = 100
MOST = 50
"""Conditions that one release may ask for."""
NOTHING: Mapping[str, int] = MappingProxyType({})
ROUNDS = 10
"""Releases after which each had its turn."""
FCM = [CredentialId(AppId(f"app{n}"), Channel("fcm")) for n in range(APPS)]


class Releases:
    """A worker's gates of many apps on one store, and the conditions that each release asked for."""

    def __init__(self) -> None:
        self._store = MemoryUnderTest()
        clock, limiter, silent = self._store.clock, MemoryLimiter(self._store.clock), Silent()
        rates = {name: RateGate(name, Rate(TokenBucket(10, 10)), limiter, clock, silent) for name in FCM}
        capabilities = Capabilities(Channel("fcm"), 10, 10, 4096)
        self._gates = Gates(dict.fromkeys(FCM, capabilities), {}, BreakerRules(), silent, rates)
        self._asked: list[str] = []
        self.is_slow = False
        """Whether the store answers too late."""

    async def open(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Take note of what the store is asked for."""
        (self._work,) = await self._store.open_workers(1)
        self._parked = ParkedWork(self._gates, self._work, ())
        promote = self._work.promote_due

        async def noted(now: Instant, n: int, lifted: Mapping[str, int] = NOTHING) -> int | None:
            self._asked += lifted
            return None if self.is_slow else await promote(now, n, lifted)

        monkeypatch.setattr(self._work, "promote_due", noted)

    async def park(self, prefix: str) -> None:
        """Park more than comes back in one turn, under such a condition of each credential."""
        bench = Bench(self._store, self._work)
        for name in FCM * 3:
            made = notification(bench.now)
            await bench.routed(made, settlement.Parked(f"{prefix}{name}", made.expires_at))

    async def next(self) -> list[str]:
        """Release as a worker does, a second later; what was asked for."""
        self._asked = []
        self._store.clock.advance(SECOND_MS)
        now = self._store.clock.now()
        await self._work.promote_due(now, 1_000, await self._parked.lifted())
        await self._gates.release_rated(self._work, now)
        return self._asked

    async def leasable(self) -> int:
        """How many have come back."""
        return len((await Bench(self._store, self._work).lease(4 * APPS)).items)


@pytest.mark.parametrize("prefix", ["breaker:", f"room:{Lane.NORMAL}/", f"rate:{Lane.NORMAL}/"])
async def test_of_many_conditions_a_release_asks_for_some_and_in_turn_for_all(
    prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All at once would hold up the loop, and everything else with it, at each release."""
    releases = Releases()
    await releases.open(monkeypatch)
    await releases.park(prefix)
    asked: set[str] = set()
    for _ in range(ROUNDS):
        some = await releases.next()
        assert 0 < len(some) <= MOST
        asked.update(some)
    assert asked == {f"{prefix}{name}" for name in FCM}, "each had its turn"
    assert await releases.leasable() >= APPS


async def test_a_rate_is_asked_for_until_the_store_has_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    """A store that is slow has not said that nothing waits."""
    releases = Releases()
    await releases.open(monkeypatch)
    await releases.park(f"rate:{Lane.NORMAL}/")
    with monkeypatch.context() as slow:
        slow.setattr(releases, "is_slow", True)
        for _ in range(ROUNDS):
            await releases.next()
    assert {each for _ in range(ROUNDS) for each in await releases.next()} == {f"rate:{Lane.NORMAL}/{it}" for it in FCM}


async def test_where_nothing_is_parked_nothing_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each lane of each credential with a rate was looked for at the start: 500 apps held the loop for a second."""
    releases = Releases()
    await releases.open(monkeypatch)
    assert await releases.next() == []
