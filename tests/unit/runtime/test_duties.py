"""Duties at work: what goes wrong with one order, and what becomes of the others."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import msgspec
import pytest

from tests.memory.bulk import MemoryBulk
from tests.memory.dedup import MemoryDedup
from tests.memory.devices import MemoryDevices
from tests.memory.erasures import MemoryErasures
from tests.memory.retention import MemoryRetention
from tests.memory.work import MemoryWork
from tests.shows import shows
from tests.unit.adapters.noted import Noted
from tests.unit.runtime.bench import APP, LaneBench
from tests.unit.runtime.test_worker import OwnsAll
from waypost.domain.amendment import Amended, Amendment, NotOpen, Withdraw
from waypost.domain.channel import Channel
from waypost.domain.errors import Unavailable
from waypost.domain.ids import AppId, NotificationId, UserId, format_id
from waypost.domain.time import DAY_MS, MINUTE_MS, Instant
from waypost.pipeline.age import DeviceAges
from waypost.pipeline.tail import Reader
from waypost.ports.erasure import Erasure
from waypost.ports.journal import JournalRow
from waypost.runtime.duties import ERASURES_AT_ONCE, Duties, DutyContext
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


async def done(duties: Duties, name: str) -> None:
    """One round of a duty."""
    (act,) = (act for named, _, act in duties.tickers(frozenset(Role)) if named == name)
    doing = act()
    assert inspect.isawaitable(doing)
    await doing


async def carried_on(duties: Duties) -> None:
    """One round of the duty that forgets users."""
    await done(duties, "erase")


def duty_context_on(bench: LaneBench) -> DutyContext:
    """All of them, on the memory adapters."""
    return DutyContext(
        bench.work,
        MemoryDevices(bench.store),
        bench.journal,
        MemoryDedup(bench.store, bench.clock),
        MemoryRetention(bench.store, bench.clock),
        MemoryBulk(bench.store),
        MemoryErasures(bench.store),
        30,
    )


class Cleared:
    """A store of something, which notes that it was swept, or fails to be."""

    def __init__(self, swept: list[str], name: str, fault: Exception | None = None) -> None:
        self._swept, self._name, self._fault = swept, name, fault

    async def drop_whole(self, before: Instant) -> Instant:
        """See Retention."""
        return before

    async def drop_before(self, before: object, n: int = 0) -> int:
        """See Retention."""
        return await self.drop_over()

    async def drop_over(self) -> int:
        """See Dedup."""
        if self._fault is not None:
            raise self._fault
        self._swept.append(self._name)
        return 1


@pytest.mark.parametrize("fault", [ValueError("of a row"), Unavailable("for a while")], ids=["fails", "is away"])
async def test_what_cannot_be_swept_keeps_nothing_else_from_being(fault: Exception, tmp_path: Path) -> None:
    """Whichever of them it is."""
    bench, names = LaneBench(tmp_path / "worker_slots"), ("dedup", "retention", "of_a_feature")
    for bad in names:
        noted, swept = Noted(), list[str]()
        parts = {name: Cleared(swept, name, fault if name == bad else None) for name in names}
        drops = {"toy": parts.pop("of_a_feature").drop_before}
        duty_context = msgspec.structs.replace(duty_context_on(bench), **parts, drops=drops)
        duties = Duties(
            msgspec.structs.replace(bench.context(), telemetry=noted), duty_context, OwnsAll(), lambda lane: None
        )
        await done(duties, "sweep")
        assert swept == [name for name in names if name != bad]
        failed = [each["error"] for each in noted.fields_of(Event.STAGE_FAILED)]
        assert failed == ([] if isinstance(fault, Unavailable) else ["ValueError"])
        assert len(noted.fields_of(Event.SWEEP_DONE)) == 1


@shows("S3-80", "S3-81")
async def test_devices_age_once_a_day_and_again_soon_where_that_failed(tmp_path: Path) -> None:
    bench, noted = LaneBench(tmp_path / "worker_slots"), Noted()
    away = [Unavailable("for a while")]

    class Aging(MemoryDevices):
        """Away at first."""

        async def purge(self, app: AppId, inactive_since: Instant) -> int:
            if away:
                raise away.pop()
            return await super().purge(app, inactive_since)

    await bench.register("ann", Channel("apns"))
    bench.clock.advance(3 * DAY_MS)
    devices = Aging(bench.store, bench.clock)
    duty_context = msgspec.structs.replace(
        duty_context_on(bench), devices=devices, ages=DeviceAges(unused_days=2, inactive_days=1)
    )
    context = msgspec.structs.replace(bench.context(), telemetry=noted)
    duties = Duties(context, duty_context, OwnsAll(), lambda lane: None)
    with pytest.raises(Unavailable):
        await done(duties, "age")
    assert [each.active for each in await devices.of_user(APP, UserId("ann"), inactive=True)] == [False]
    bench.clock.advance(2 * DAY_MS)
    for _ in range(2):
        await done(duties, "age")
    assert noted.fields_of(Event.DEVICES_AGED) == [{"app": APP, "deactivated": 0, "deleted": 1}]
    assert await devices.of_user(APP, UserId("ann"), inactive=True) == []


async def test_a_withdrawal_that_fails_keeps_no_other_of_cancelled_jobs_waiting(tmp_path: Path) -> None:
    bench, noted = LaneBench(tmp_path / "worker_slots"), Noted()
    ids = bench.ids.next(3)
    faults: dict[NotificationId, Exception] = {ids[0]: ValueError("of a row"), ids[1]: Unavailable("its shard moves")}
    asked: list[NotificationId] = []

    class Leftovers(MemoryBulk):
        """Something is open of a cancelled job."""

        async def tidy(self, now: Instant, n: int) -> list[tuple[AppId, NotificationId]]:
            return [(APP, one) for one in ids]

    class Withdraws(MemoryWork):
        """Cannot withdraw some."""

        async def amend(self, amendments: Sequence[Amendment], now: Instant) -> list[Amended]:
            (order,) = amendments
            assert isinstance(order, Withdraw)
            asked.append(order.id)
            if order.id in faults:
                raise faults[order.id]
            return [NotOpen(None)]

    parts = {"bulk": Leftovers(bench.store), "work": Withdraws(bench.store, bench.clock)}
    duty_context = msgspec.structs.replace(duty_context_on(bench), **parts)
    duties = Duties(
        msgspec.structs.replace(bench.context(), telemetry=noted), duty_context, OwnsAll(), lambda lane: None
    )
    await done(duties, "tidy")
    assert asked == ids
    named = {"app": APP, "notification_id": format_id(ids[0])}
    assert noted.fields_of(Event.STAGE_FAILED) == [{"stage": "tidy", "error": "ValueError", **named}]


async def test_an_erasure_that_fails_keeps_no_other_waiting(tmp_path: Path) -> None:
    """More of them than a page holds, all older than the one that can be carried out; they are tried again."""
    bench, noted = LaneBench(tmp_path / "worker_slots"), Noted()
    registry, erasures = Registry(bench), MemoryErasures(bench.store)
    duty_context = msgspec.structs.replace(duty_context_on(bench), devices=registry, erasures=erasures)
    context = msgspec.structs.replace(bench.context(), telemetry=noted)
    duties = Duties(context, duty_context, OwnsAll(), lambda lane: None)
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


async def test_a_reader_of_the_journal_that_fails_keeps_no_other_waiting_and_no_row_is_lost_to_it(
    tmp_path: Path,
) -> None:
    """Its rows are not swept away; as it works again, it is told them all, and the other none twice."""
    bench = LaneBench(tmp_path / "worker_slots")
    bench.store.journal += [JournalRow(n, ()) for n in (1, 2, 3)]
    told: dict[str, list[int]] = {"bad": [], "good": []}
    broken = True

    async def hear(name: str, rows: Sequence[JournalRow]) -> None:
        if name == "bad" and broken:
            raise ValueError(name)
        told[name] += [row.position for row in rows]

    readers = [Reader(name, partial(hear, name)) for name in told]

    def duties() -> Duties:
        duty_context = msgspec.structs.replace(duty_context_on(bench), readers=readers)
        return Duties(bench.context(), duty_context, OwnsAll(), lambda lane: None)

    with pytest.raises(ValueError, match="bad"):
        await done(duties(), "read.bad")
    await done(duties(), "read.good")
    await done(duties(), "report")
    await done(duties(), "sweep")
    assert told == {"bad": [], "good": [1, 2, 3]}
    assert len(bench.store.journal) == 3
    broken = False
    await done(duties(), "read.bad")
    await done(duties(), "read.good")
    await done(duties(), "sweep")
    assert told == {"bad": [1, 2, 3], "good": [1, 2, 3]}
    assert bench.store.journal == []


@pytest.mark.parametrize("fault", [ValueError("of a row"), Unavailable("for a while")], ids=["fails", "is away"])
async def test_a_prompt_reader_that_fails_keeps_no_other_waiting(tmp_path: Path, fault: Exception) -> None:
    bench, noted = LaneBench(tmp_path / "worker_slots"), Noted()
    bench.store.journal += [JournalRow(n, ()) for n in (1, 2)]
    heard: list[int] = []

    async def fail(rows: Sequence[JournalRow]) -> None:
        raise fault

    async def hear(rows: Sequence[JournalRow]) -> None:
        heard.extend(row.position for row in rows)

    readers = [Reader("bad", fail, is_prompt=True), Reader("good", hear, is_prompt=True)]
    duty_context = msgspec.structs.replace(duty_context_on(bench), readers=readers)
    context = msgspec.structs.replace(bench.context(), telemetry=noted)
    duties = Duties(context, duty_context, OwnsAll(), lambda lane: None)
    duties.written()
    await done(duties, "read.promptly")
    assert heard == [1, 2]
    failed = [] if isinstance(fault, Unavailable) else [{"stage": "read.bad", "error": "ValueError"}]
    assert noted.fields_of(Event.STAGE_FAILED) == failed
