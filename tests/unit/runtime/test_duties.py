"""Duties at work: what goes wrong with one order, and what becomes of the others."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from tests.unit.adapters.noted import Noted
from tests.unit.runtime.bench import APP, LaneBench
from tests.unit.runtime.test_worker import OwnsAll
from waypost.adapters.memory.audit import MemoryAudit
from waypost.adapters.memory.bulk import MemoryBulk
from waypost.adapters.memory.dedup import MemoryDedup
from waypost.adapters.memory.devices import MemoryDevices
from waypost.adapters.memory.erasures import MemoryErasures
from waypost.adapters.memory.retention import MemoryRetention
from waypost.domain.errors import Unavailable
from waypost.domain.ids import AppId, UserId, format_id
from waypost.domain.time import MINUTE_MS, Instant
from waypost.ports.erasure import Erasure
from waypost.runtime.duties import ERASURES_AT_ONCE, Chores, Duties
from waypost.runtime.roles import Role
from waypost.telemetry import Event

pytestmark = pytest.mark.asyncio


class Registry(MemoryDevices):
    """Cannot forget some of its users."""

    def __init__(self, bench: LaneBench) -> None:
        super().__init__(bench.store)
        self.faults: dict[UserId, Exception] = {}

    async def erase(self, app: AppId, user_id: UserId, until: Instant) -> None:
        """See Devices; what is wrong with this one."""
        if user_id in self.faults:
            raise self.faults[user_id]
        await super().erase(app, user_id, until)


async def carried_on(duties: Duties) -> None:
    """One round of the duty that forgets users."""
    (act,) = (act for name, _, act in duties.tickers(frozenset({Role.SWEEP})) if name == "erase")
    doing = act()
    assert doing is not None
    await doing


async def test_an_erasure_that_fails_keeps_no_other_waiting(tmp_path: Path) -> None:
    """More of them than a page holds, all older than the one that can be carried out; they are tried again."""
    bench, noted = LaneBench(tmp_path / "board"), Noted()
    registry, erasures = Registry(bench), MemoryErasures(bench.store)
    chores = Chores(
        bench.work,
        registry,
        bench.journal,
        MemoryDedup(bench.store, bench.clock),
        MemoryRetention(bench.store),
        MemoryBulk(bench.store),
        erasures,
        MemoryAudit(bench.store),
        30,
        365,
    )
    crew = msgspec.structs.replace(bench.crew(), telemetry=noted)
    duties = Duties(crew, chores, OwnsAll(), lambda lane: None)
    users = [UserId(f"user-{n}") for n in range(ERASURES_AT_ONCE + 3)]
    orders = []
    for user in users:
        (made,) = bench.ids.next(1)
        orders.append(await erasures.ask(Erasure(made, APP, user, UserId("erased-0"), bench.clock.now())))
    registry.faults = dict.fromkeys(users[:-2], ValueError("of a row")) | {users[-2]: Unavailable("for a while")}
    bench.clock.advance(MINUTE_MS)
    await carried_on(duties)
    assert await erasures.standing(100) == orders[:-1]
    assert noted.fields_of(Event.USER_ERASED) == [{"app": APP, "erasure": format_id(orders[-1].id)}]
    assert noted.fields_of(Event.ERASURE_FAILED) == [
        {"app": APP, "erasure": format_id(order.id), "error": "ValueError"} for order in orders[:-2]
    ]
    registry.faults.clear()
    await carried_on(duties)
    assert await erasures.standing(100) == []
