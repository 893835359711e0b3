"""Series on a store: steps over days in their order, each once; an exit ends it, an edit is for who joins later."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pytest
import pytest_asyncio
from msgspec.structs import replace

from tests.contract.bench import APP, CALLER, Bench, sent
from tests.contract.scheduling import ground_on, submitted
from tests.contract.sql import SqlUnderTest
from tests.shows import shows
from waypost.domain.amendment import Confirm
from waypost.domain.errors import Unavailable
from waypost.domain.ids import UserId
from waypost.domain.profile import Profile
from waypost.domain.series import Condition, Member, MemberState, Series, Step, joined
from waypost.domain.status import DeliveryStatus
from waypost.domain.time import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS, isoformat, later
from waypost.domain.tracked import TrackedEvent
from waypost.features.parts import Ground
from waypost.features.series.moving import IN_DOUBT, REMOVED, move_due
from waypost.features.series.parts import PARTS
from waypost.stores.sql import digests as digest_store
from waypost.stores.sql import schedules as schedule_store
from waypost.stores.sql import series as series_store
from waypost.stores.sql.driver import Connection
from waypost.stores.sql.transaction import OperationKind, Transaction

pytestmark = pytest.mark.asyncio

ANN, BOB = UserId("ann"), UserId("bob")
DAY_S = DAY_MS // SECOND_MS
ZONE = "Europe/Zurich"


def step(name: str, days: int = 0, **fields: Any) -> Step:
    """A step that says its name."""
    return Step(name, f'{{"title": "{name}"}}'.encode(), after_s=days * DAY_S, **fields)


def series(bench: Bench, *steps: Step, version: int = 1, exit_on: tuple[str, ...] = ("order_paid",)) -> Series:
    """A version of the series."""
    return Series(
        app=APP, name="basket", version=version, caller=CALLER, steps=steps, exit_on=exit_on, created_at=bench.now
    )


@pytest_asyncio.fixture
async def bench(ledger_store: SqlUnderTest) -> Bench:
    """A worker on an empty store."""
    (worker,) = await ledger_store.open_workers(1)
    return Bench(ledger_store, worker)


async def begin(bench: Bench, made: Series, *users: UserId, **data: Any) -> Ground:
    """Add a version that *users* join, on what the duty works with."""
    ground = ground_on(bench)
    assert await ground.store.series.add(made)
    for user in users:
        assert await ground.store.series.join(joined(made, user, ZONE, bench.now, data), bench.now)
    return ground


async def at(ground: Ground, user: UserId = ANN) -> Member:
    """Where a member is."""
    found = await ground.store.series.member(APP, "basket", user)
    assert found is not None
    return found


async def told(bench: Bench, ground: Ground, hours: int) -> list[tuple[str, str]]:
    """What was said to whom while hours passed."""
    was = len(await submitted(bench))
    for _ in range(hours // 6):
        await move_due(ground)
        bench.clock.advance(6 * HOUR_MS)
    await move_due(ground)
    return [(each.user_id, each.content.title or "") for each in (await submitted(bench))[was:]]


THREE = (step("welcome"), step("tips", 2), step("offer", 3))


@shows("S4-76")
async def test_steps_over_days_come_in_their_order_and_an_event_ends_them(bench: Bench) -> None:
    ground = await begin(bench, series(bench, *THREE), ANN, BOB)
    start = bench.now
    assert await told(bench, ground, 42) == [("ann", "welcome"), ("bob", "welcome")]
    assert sorted(await told(bench, ground, 12)) == [("ann", "tips"), ("bob", "tips")]
    assert PARTS.hears is not None
    events = [TrackedEvent(APP, BOB, name, bench.now) for name in ("page_seen", "order_paid", "order_paid")]
    await ground.store.user_events.track([*events, TrackedEvent(APP, ANN, "page_seen", bench.now)], [PARTS.hears])
    assert await told(bench, ground, 5 * 24) == [("ann", "offer")]
    ann, bob = await at(ground), await at(ground, BOB)
    assert [(each.step, isoformat(each.at)) for each in ann.done] == [
        ("welcome", isoformat(start)),
        ("tips", isoformat(later(start, 2 * DAY_MS))),
        ("offer", isoformat(later(start, 5 * DAY_MS))),
    ]
    assert (ann.state, ann.due_at, bob.state, bob.why) == (MemberState.DONE, None, "exited", "event: order_paid")
    assert [each.step for each in bob.done] == ["welcome", "tips"]


@shows("S4-76")
async def test_who_is_under_way_ends_with_the_version_that_they_began(bench: Bench) -> None:
    ground = await begin(bench, series(bench, *THREE), ANN)
    assert await told(bench, ground, 24) == [("ann", "welcome")]
    newer = series(bench, step("hello"), step("bye", 1), version=2, exit_on=("unsubscribed",))
    assert await ground.store.series.add(newer)
    assert not await ground.store.series.add(newer), "a version never changes"
    assert await ground.store.series.join(joined(newer, BOB, ZONE, bench.now, {}), bench.now)
    said = await told(bench, ground, 5 * 24)
    assert [title for user, title in said if user == ANN] == ["tips", "offer"]
    assert [title for user, title in said if user == BOB] == ["hello", "bye"]
    assert ((await at(ground)).version, (await at(ground, BOB)).version) == (1, 2)
    latest = await ground.store.series.latest(APP, "basket")
    assert latest == newer
    assert await ground.store.series.counts(APP, "basket") == {MemberState.DONE: 2}


async def test_a_step_waits_for_nine_in_the_morning_of_the_member(bench: Bench) -> None:
    made = series(bench, step("welcome"), step("tips", 2, at="09:00"))
    ground = await begin(bench, made, ANN)
    await ground.store.profiles.put(APP, ANN, Profile(time_zone="Asia/Tokyo"), bench.now)
    await move_due(ground)
    due_at = (await at(ground)).due_at
    assert due_at is not None
    assert isoformat(due_at).endswith("T00:00:00.000Z")
    assert 2 * DAY_MS <= due_at - bench.now < 3 * DAY_MS
    bench.clock.advance(due_at - bench.now - 1)
    await move_due(ground)
    assert len(await submitted(bench)) == 1, "never early"


async def test_a_step_is_for_whom_its_conditions_hold(bench: Bench) -> None:
    steps = (
        step("welcome"),
        step("premium", 1, when=(Condition(data={"plan": "premium"}),)),
        step("basic", 1, unless=(Condition(data={"plan": "premium"}),)),
        step("seen", 1, when=(Condition(event="page_seen"),)),
        step("unread", 1, unless=(Condition(step="welcome", reached=DeliveryStatus.OPENED),)),
    )
    ground = await begin(bench, series(bench, *steps), ANN, plan="premium")
    assert await ground.store.series.join(joined(series(bench, *steps), BOB, ZONE, bench.now, {}), bench.now)
    await move_due(ground)
    lease = await bench.take()
    for item in lease.items:
        await bench.settle_first(lease, item, 1, sent(0, bench.now))
        if item.notification.user_id == ANN:
            opened = Confirm(APP, item.notification.id, 0, DeliveryStatus.OPENED, bench.now)
            await bench.worker.amend([opened], bench.now)
    await ground.store.series.exit_by_event(APP, BOB, "page_seen")
    said = await told(bench, ground, 6 * 24)
    assert [title for user, title in said if user == ANN] == ["premium"]
    assert [title for user, title in said if user == BOB] == ["basic", "seen", "unread"]
    assert [each.step for each in (await at(ground)).done] == [each.name for each in steps], "what is skipped is told"


async def test_a_crash_between_submitting_and_going_on_repeats_nothing(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    ground = await begin(bench, series(bench, *THREE), ANN)
    replaces = ground.store.series.replace

    async def dies(before: Member, after: Member, now: Any) -> Member | None:
        if after.claimed_at is None:
            raise Unavailable("killed")
        return await replaces(before, after, now)

    with monkeypatch.context() as dying:
        dying.setattr(ground.store.series, "replace", dies)
        with pytest.raises(Unavailable):
            await move_due(ground)
    (made,) = await submitted(bench)
    assert ((await at(ground)).claimed_at, (await at(ground)).step) == (bench.now, 0)
    bench.clock.advance(MINUTE_MS)
    await move_due(ground)
    assert (await submitted(bench)) == [made]
    assert ((await at(ground)).step, (await at(ground)).done[0].id) == (1, made.id)


async def test_who_leaves_while_a_step_is_submitted_is_told_no_more(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    ground = await begin(bench, series(bench, *THREE), ANN)
    submit = type(ground.door.intake).submit

    async def leaves(*asked: Any) -> Any:
        await ground.store.series.exit_by_event(APP, ANN, "order_paid")
        return await submit(*asked)

    monkeypatch.setattr(type(ground.door.intake), "submit", leaves)
    assert await told(bench, ground, 6 * 24) == [("ann", "welcome")]
    ann = await at(ground)
    assert (ann.state, ann.due_at, [each.step for each in ann.done]) == ("exited", None, ["welcome"])


async def test_after_an_outage_the_days_between_steps_are_kept(bench: Bench) -> None:
    ground = await begin(bench, series(bench, *THREE), ANN)
    await move_due(ground)
    bench.clock.advance(30 * DAY_MS)
    await move_due(ground)
    await move_due(ground)
    assert [each.content.title for each in await submitted(bench)] == ["welcome", "tips"]
    assert (await at(ground)).due_at == later(bench.now, 3 * DAY_MS)


async def test_a_claim_that_is_a_day_old_is_not_submitted_again(bench: Bench) -> None:
    made = series(bench, *THREE)
    ground = await begin(bench, made)
    lost = replace(joined(made, ANN, ZONE, bench.now, {}), claimed_at=bench.now)
    assert await ground.store.series.join(lost, bench.now)
    bench.clock.advance(23 * HOUR_MS + 1)
    await move_due(ground)
    assert (await submitted(bench), (await at(ground)).done[0].error) == ([], IN_DOUBT)


async def test_a_series_is_removed_with_its_members(bench: Bench) -> None:
    ground = await begin(bench, series(bench, *THREE), ANN)
    assert await ground.store.series.remove(APP, "basket")
    assert not await ground.store.series.remove(APP, "basket")
    assert await ground.store.series.member(APP, "basket", ANN) is None
    assert await told(bench, ground, 6) == []


async def test_a_series_of_many_is_removed_page_by_page(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    users = [UserId(f"u{n}") for n in range(5)]
    ground = await begin(bench, series(bench, *THREE), *users)
    monkeypatch.setattr("waypost.stores.sql.series.COUNTED", 3)
    assert sum((await ground.store.series.counts(APP, "basket")).values()) == 3
    monkeypatch.setattr("waypost.stores.sql.series.REMOVED_PAGE", 2)
    assert await ground.store.series.remove(APP, "basket")
    assert await ground.store.series.members(APP, "basket", "", 10) == []
    assert await ground.store.series.latest(APP, "basket") is None


async def test_nobody_joins_a_version_that_is_gone(bench: Bench) -> None:
    made = series(bench, *THREE)
    ground = await begin(bench, made)
    assert await ground.store.series.remove(APP, "basket")
    assert not await ground.store.series.join(joined(made, ANN, ZONE, bench.now, {}), bench.now)
    assert await ground.store.series.member(APP, "basket", ANN) is None


async def test_a_member_whose_version_is_gone_holds_up_no_event_and_ends(bench: Bench) -> None:
    ground = await begin(bench, series(bench, *THREE), ANN, BOB)
    await execute(ground, "DELETE FROM series_version")
    await ground.store.series.exit_by_event(APP, ANN, "order_paid")
    assert (await at(ground)).state is MemberState.ACTIVE
    assert await told(bench, ground, 6) == []
    ends = [await at(ground), await at(ground, BOB)]
    assert [(each.state, each.why, each.due_at) for each in ends] == [(MemberState.EXITED, REMOVED, None)] * 2
    assert await ground.store.series.drop(later(bench.now, 1), 10) == 2


async def test_a_step_that_cannot_be_read_here_waits_and_the_others_go_on(bench: Bench) -> None:
    newer = replace(series(bench, Step("newer", b'{"title": 7}')), name="newer")
    ground = await begin(bench, newer, ANN)
    await begin(bench, replace(series(bench, *THREE), name="unreadable"), ANN)
    await begin(bench, series(bench, *THREE), BOB)
    await execute(ground, "UPDATE series_version SET body = ? WHERE name = 'unreadable'", b"\xc1")
    assert await told(bench, ground, 6) == [("bob", "welcome")]
    waiting = await ground.store.series.member(APP, "newer", ANN)
    assert waiting is not None
    assert (waiting.step, waiting.state) == (0, MemberState.ACTIVE)


async def test_who_is_through_is_found_by_an_index(bench: Bench) -> None:
    ground = await begin(bench, series(bench, *THREE), ANN)
    plans = [
        await plan(ground, sql, values)
        for sql, values in (
            (series_store._DROP, (bench.now, 10)),
            (schedule_store._DROP, (bench.now, 10)),
            (digest_store._OF_USER, (APP, ANN)),
        )
    ]
    assert [each for each in plans if re.search(r"\bSCAN (series_member|schedule|digest)\b|Seq Scan", each)] == []


async def execute(ground: Ground, sql: str, *values: object) -> None:
    """Do what no operation of the store does."""

    def run(transaction: Transaction, ops: Sequence[None]) -> list[None]:
        transaction.connection.execute(sql, values)
        return [None] * len(ops)

    await ground.store.database.commits.submit(OperationKind("meddle", run, durable=True), None)


async def plan(ground: Ground, sql: str, values: tuple[object, ...]) -> str:
    """How the engine finds the rows of a statement, where it may choose an index."""

    def explain(connection: Connection) -> str:
        if not connection.dialect.has_jsonb:
            return "\n".join(row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}", values).fetchall())
        connection.execute("SET LOCAL enable_seqscan = off")
        return "\n".join(row[0] for row in connection.execute(f"EXPLAIN {sql}", values).fetchall())

    found: str = await ground.store.database.read(explain)
    return found


async def test_who_is_through_goes_after_a_while(bench: Bench) -> None:
    ground = await begin(bench, series(bench, step("welcome"), step("bye", 9)), ANN)
    short = await begin(bench, replace(series(bench, step("welcome")), name="short"))
    assert await short.store.series.join(
        replace(joined(series(bench, step("welcome")), BOB, ZONE, bench.now, {}), series="short"), bench.now
    )
    await move_due(ground)
    assert await ground.store.series.drop(later(bench.now, MINUTE_MS), 10) == 1
    assert (await at(ground)).state is MemberState.ACTIVE
