"""Campaigns on a store: everybody once from step to step, whoever dies, stops, resumes or changes their mind."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
import pytest_asyncio
from msgspec.structs import replace

from tests.contract.bench import APP, CALLER, Bench
from tests.contract.bulk_bench import leased, registered, taken, users_of
from tests.contract.sql import SqlUnderTest
from waypost.config import AppSettings, Config
from waypost.config.settings import CampaignSettings
from waypost.domain.bulk import JobState, Recipient
from waypost.domain.campaign import Campaign, CampaignOrder, CampaignState, CampaignSubmission
from waypost.domain.channel import APNS
from waypost.domain.delivery import FailureClass, Target
from waypost.domain.errors import ErrorCode, InvalidRequest, WaypostError
from waypost.domain.ids import CallerId, DeviceId, UserId
from waypost.domain.settlement import Change, Dead
from waypost.domain.status import NotificationStatus
from waypost.domain.time import HOUR_MS, later
from waypost.features.campaigns import ordering
from waypost.features.campaigns.jobs import begin_step, counts_of, records_of
from waypost.features.campaigns.running import drop_old, tend
from waypost.features.campaigns.views import campaign_view
from waypost.features.parts import Ground
from waypost.ports.work import Settled, WorkItem

pytestmark = pytest.mark.asyncio

USERS = [f"u{n:03}" for n in range(60)]
OTHER = CallerId("boss")
RAMP = {"steps": [10, 30], "hold": 60, "max_failed": 0.2}
_S, _O = CampaignState, CampaignOrder


class CampaignBench(Bench):
    """One worker on a store, and the campaign `spring` of an app."""

    ground: Ground
    approval = False

    @property
    def campaigns(self) -> Any:
        """The store's campaigns."""
        return self.ground.store.campaigns

    async def put(self, by: CallerId = CALLER, **fields: Any) -> Campaign:
        """Draft or change it."""
        asked = {"notification": {"title": "Sale"}, "recipients": USERS} | fields
        asked = {name: value for name, value in asked.items() if value is not None}
        submission = msgspec.convert(asked, CampaignSubmission)
        return (await ordering.put(self.ground, APP, "spring", by, submission))[0]

    async def order(self, order: CampaignOrder, by: CallerId = CALLER, at: Any = None) -> Campaign:
        """Order it about."""
        return await ordering.order(self.ground, APP, "spring", by, order, at)

    async def stands(self) -> Campaign:
        """How it stands."""
        return await ordering.found(self.ground, APP, "spring")

    async def counts(self) -> Counter[NotificationStatus]:
        """Its recipients by status."""
        return counts_of(await records_of(self.ground, await self.stands()))

    async def walk(self) -> None:
        """Enqueue whoever may be."""
        for each in await self.bulk.running():
            while (await self.bulk.enqueue(each.app, each.id, 30, 7)).moved:
                pass

    async def send(self, fails: Callable[[str], bool] = lambda _: False, n: int = 1000) -> list[str]:
        """Enqueue and send; who was told."""
        await self.walk()
        lease = await leased(self, n)
        await self.settle(lease, *(_ended(item, self, fails) for item in lease.items))
        await self.bulk.tidy(self.now, 1000)
        return users_of(lease)

    async def rounds(self, count: int, fails: Callable[[str], bool] = lambda _: False) -> list[list[str]]:
        """Let it go on a minute at a time; who was told in each."""
        told = []
        for _ in range(count):
            await tend(self.ground)
            told.append(await self.send(fails))
            await tend(self.ground)
            self.clock.advance(61_000)
        return told


def _ended(item: WorkItem, bench: Bench, fails: Callable[[str], bool]) -> Settled:
    if not fails(item.notification.user_id):
        return taken(item, bench.now)
    dead = Dead("400", "bad", FailureClass.TERMINAL, letter=False)
    return Settled(item.notification, (Change(0, 1, dead, bench.now),), (Target(0, DeviceId("d"), APNS),))


@pytest_asyncio.fixture
async def bench(ledger_store: SqlUnderTest) -> CampaignBench:
    """An empty store with devices of all users."""
    (worker,) = await ledger_store.open_workers(1)
    made = CampaignBench(ledger_store, worker)
    made.ground = replace(ledger_store.ground_of(worker), config=Config(apps={APP: AppSettings()}))
    await asyncio.gather(*(registered(made, user) for user in USERS))
    return made


def _with_approval(bench: CampaignBench) -> None:
    settings = AppSettings(campaigns=CampaignSettings(approval=True))
    bench.ground = replace(bench.ground, config=Config(apps={APP: settings}))


@pytest.mark.parametrize("listed", [True, False])
async def test_a_ramp_tells_some_then_more_then_all_each_once(bench: CampaignBench, listed: bool) -> None:
    """A tenth, a third, all, by chance and not by name; each step a minute after the one before."""
    audience: dict[str, Any] = {} if listed else {"recipients": None, "registry": {}}
    await bench.put(ramp=RAMP, **audience)
    assert await bench.send() == []
    await bench.order(_O.SCHEDULE)
    first, second, third, *rest = await bench.rounds(4)
    assert [len(each) > 0 for each in (first, second, third)] == [True] * 3
    assert len(first) < len(second) < len(third)
    assert sorted(first + second + third) == USERS
    assert rest == [[]]
    assert first != USERS[: len(first)], "a sample, not those whose ids come first"
    ended = await bench.stands()
    assert (ended.state, len(ended.jobs)) == (_S.DONE, 3)
    assert await bench.counts() == {NotificationStatus.SENT: len(USERS)}
    await tend(bench.ground)
    assert await bench.campaigns.open() == []
    assert await bench.campaigns.recipients(APP, "spring", "", 9) == []


async def test_the_next_step_waits_for_its_time(bench: CampaignBench) -> None:
    await bench.put(ramp=RAMP)
    await bench.order(_O.SCHEDULE)
    await tend(bench.ground)
    await bench.send()
    for _ in range(3):
        await tend(bench.ground)
        assert await bench.send() == []
    bench.clock.advance(61_000)
    await tend(bench.ground)
    assert await bench.send() != []


async def test_a_ramp_stops_by_itself_where_too_much_fails_and_goes_on_where_somebody_says_so(
    bench: CampaignBench,
) -> None:
    """Nobody of the next step is told; what failed so far counts no more after that."""
    await bench.put(ramp=RAMP)
    await bench.order(_O.SCHEDULE)
    told = await bench.rounds(3, fails=lambda _: True)
    stopped = await bench.stands()
    assert (stopped.state, len(stopped.jobs), told[1:]) == (_S.PAUSED, 1, [[], []])
    assert stopped.why == f"{len(told[0])} of {len(told[0])} failed in step 1"
    await bench.order(_O.RESUME)
    assert sorted(told[0] + [user for each in await bench.rounds(5) for user in each]) == USERS
    assert (await bench.stands()).state is _S.DONE


async def test_a_large_step_stops_while_it_runs(bench: CampaignBench) -> None:
    """The last step too, once enough have ended to judge by."""
    await bench.put(ramp={"steps": [], "hold": 0, "max_failed": 0.5})
    await bench.order(_O.SCHEDULE)
    await tend(bench.ground)
    await bench.send(lambda _: True, 19)
    await tend(bench.ground)
    assert (await bench.stands()).state is _S.RUNNING
    await bench.send(lambda _: True, 1)
    await tend(bench.ground)
    assert (await bench.stands()).state is _S.PAUSED
    assert await bench.send() == []


async def test_pause_and_resume_tell_everybody_once(bench: CampaignBench) -> None:
    await bench.put()
    await bench.order(_O.SCHEDULE)
    await tend(bench.ground)
    told = await bench.send(n=25)
    await bench.order(_O.PAUSE)
    await tend(bench.ground)
    assert await bench.send() == []
    bench.clock.advance(HOUR_MS)
    await bench.order(_O.RESUME)
    await tend(bench.ground)
    assert sorted(told + await bench.send()) == USERS
    await tend(bench.ground)
    ended = await bench.stands()
    assert (ended.state, ended.ran_ms) == (_S.DONE, 0), "an hour's pause is no time that it ran"


async def test_cancelled_ones_tell_nobody_more(bench: CampaignBench) -> None:
    await bench.put(ramp=RAMP)
    await bench.order(_O.SCHEDULE)
    (told,) = await bench.rounds(1)
    await bench.order(_O.CANCEL)
    assert await bench.rounds(3) == [[], [], []]
    assert [each.state for each in await records_of(bench.ground, await bench.stands())] == [JobState.FINISHED]
    assert (await bench.campaigns.open(), len(told) > 0) == ([], True)


@pytest.mark.parametrize("dies", ["add", "save", "order"])
async def test_whoever_dies_while_a_step_begins_leaves_it_to_be_begun_once(
    bench: CampaignBench, dies: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before each write of it: the next one makes the same job again, with the same list."""
    await bench.put()
    await bench.order(_O.SCHEDULE)
    store = bench.ground.store
    broken = store.campaigns if dies == "save" else store.bulk

    async def dead(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    begun = replace(await bench.stands(), state=_S.RUNNING, revision=99, running_since=bench.now)
    await store.campaigns.save(begun, (await bench.stands()).revision)
    with monkeypatch.context() as patched:
        patched.setattr(broken, dies, dead)
        with pytest.raises(KeyboardInterrupt):
            await begin_step(bench.ground, begun)
    assert await bench.send() == [], "nothing is sent before the step is begun"
    assert [user for each in await bench.rounds(2) for user in each] == USERS
    assert (await bench.stands()).state is _S.DONE
    assert len(await store.bulk_views.list(APP, None, 10)) == 1


async def test_two_processes_begin_a_step_once(bench: CampaignBench) -> None:
    """The role may be another's for a moment before the one before knows."""
    await bench.put()
    await bench.order(_O.SCHEDULE)
    await tend(bench.ground)
    seen = replace(await bench.stands(), jobs=(), revision=(await bench.stands()).revision - 1)
    assert await begin_step(bench.ground, seen) is None
    assert await bench.send() == USERS
    assert len(await bench.ground.store.bulk_views.list(APP, None, 10)) == 1


async def test_a_scheduled_one_begins_at_its_time(bench: CampaignBench) -> None:
    await bench.put()
    await bench.order(_O.SCHEDULE, at=later(bench.now, 2 * HOUR_MS))
    await bench.order(_O.SCHEDULE, at=later(bench.now, HOUR_MS))
    await tend(bench.ground)
    assert (await bench.stands()).state is _S.SCHEDULED
    bench.clock.advance(HOUR_MS)
    await tend(bench.ground)
    assert await bench.send() == USERS


async def test_another_person_approves_where_the_app_says_so_and_a_change_takes_it_back(bench: CampaignBench) -> None:
    _with_approval(bench)
    await bench.put()
    with pytest.raises(WaypostError) as refused:
        await bench.order(_O.SCHEDULE)
    assert refused.value.code is ErrorCode.WRONG_STATE
    with pytest.raises(WaypostError) as refused:
        await bench.order(_O.APPROVE)
    assert refused.value.code is ErrorCode.FORBIDDEN
    assert (await bench.order(_O.APPROVE, OTHER)).approved_by == OTHER
    changed = await bench.put(notification={"title": "Bigger sale"})
    assert (changed.state, changed.approved_by) == (_S.DRAFT, None)
    with pytest.raises(WaypostError):
        await bench.order(_O.SCHEDULE)
    await bench.order(_O.APPROVE, OTHER)
    await bench.order(_O.SCHEDULE)
    with pytest.raises(WaypostError):
        await bench.put(notification={"title": "Even bigger"})


async def test_a_list_stays_with_a_change_unless_the_texts_ask_for_more(bench: CampaignBench) -> None:
    named = {"title": "{{name}}, our sale"}
    await bench.put(recipients=None, upload=True, notification=named)
    assert await bench.campaigns.add(APP, "spring", [Recipient(UserId("u001"), {"name": "Bo"})] * 2)
    assert (await bench.put(recipients=None, upload=True, notification=named | {"body": "Now"})).listed == 1
    assert (await bench.put(recipients=None, upload=True, notification={"title": "Sale"})).listed == 1
    with pytest.raises(InvalidRequest):
        await bench.put(notification=named)
    more = {"title": "{{name}}, {{city}}"}
    assert (await bench.put(recipients=None, upload=True, notification=more)).listed == 0
    with pytest.raises(WaypostError):
        await bench.order(_O.SCHEDULE)


async def test_an_erased_user_is_on_no_list(bench: CampaignBench) -> None:
    await bench.put()
    await bench.campaigns.erase(APP, UserId("u007"))
    assert (await bench.stands()).listed == len(USERS) - 1
    await bench.order(_O.SCHEDULE)
    assert (await bench.rounds(1))[0] == [user for user in USERS if user != "u007"]


async def test_old_ones_are_dropped(bench: CampaignBench) -> None:
    await bench.put()
    await bench.order(_O.SCHEDULE)
    await bench.rounds(2)
    assert await drop_old(bench.ground, later(bench.now, 89 * 24 * HOUR_MS)) == 0
    assert await drop_old(bench.ground, later(bench.now, 91 * 24 * HOUR_MS)) == 1
    assert await bench.campaigns.get(APP, "spring") is None


async def test_a_campaign_whose_step_surprises_is_paused_and_others_go_on(
    bench: CampaignBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    await bench.put()
    await bench.order(_O.SCHEDULE)
    await tend(bench.ground)

    async def broken(*_: Any) -> None:
        raise ValueError

    monkeypatch.setattr(bench.ground.store.bulk_views, "show", broken)
    await tend(bench.ground)
    monkeypatch.undo()
    stopped = await bench.stands()
    assert (stopped.state, stopped.why) == (_S.PAUSED, "its step ended with ValueError")


async def test_progress_says_how_long_it_will_take(bench: CampaignBench) -> None:
    await bench.put(ramp=RAMP, rate=None)
    await bench.order(_O.SCHEDULE)
    await tend(bench.ground)
    bench.clock.advance(10_000)
    told = await bench.send()
    view = campaign_view(await bench.stands(), await records_of(bench.ground, await bench.stands()), bench.now)
    speed = len(told) / 10
    assert (view.step, view.steps, view.per_second) == (1, 3, round(speed, 1))
    assert view.seconds_left == round((len(USERS) - len(told)) / speed) + 2 * 60
