"""Variants of a bulk job: each recipient's own, from the lease on, and the same when it is read again."""

from __future__ import annotations

import itertools

import msgspec
import pytest

from tests.contract.bench import APP, Bench, again
from tests.contract.bulk_bench import created, job, leased, registered, taken, users_of, walked
from waypost.domain.bulk import BulkJob, JobOrder, JobState, Recipient
from waypost.domain.channel import APNS
from waypost.domain.content import Content
from waypost.domain.delivery import Target
from waypost.domain.ids import DeviceId, UserId
from waypost.domain.time import HOUR_MS
from waypost.domain.variants import Part, Split, Variant, variant_for
from waypost.ports.work import Settled, WorkItem

pytestmark = pytest.mark.asyncio

SPLIT = Split((Variant("a", title="Sale, {{name}}"), Variant("b", 3, title="{{name}}: sale")), holdout=20)
USERS = [UserId(f"u{n:02}") for n in range(24)]


def _varied(made: BulkJob) -> BulkJob:
    content = Content(title="?", body="Today", campaign="spring", split=SPLIT)
    return msgspec.structs.replace(made, content=content)


def _expected(user: UserId, name: str) -> tuple[str | None, str | None, str | None]:
    variant = variant_for(SPLIT, "spring", user)
    return {"a": f"Sale, {name}", "b": f"{name}: sale"}.get(variant, "?"), "Today", variant


def _said(item: WorkItem) -> tuple[str | None, str | None, str | None]:
    content = item.notification.content
    assert (content.campaign, content.split) == ("spring", None)
    return content.title, content.body, content.variant


@pytest.mark.parametrize("listed", [True, False])
async def test_each_recipient_is_told_their_variant_at_each_attempt_and_where_it_is_looked_up(
    bench: Bench, listed: bool
) -> None:
    await registered(bench, *USERS)
    made = await created(bench, _varied(job(registry=None) if listed else job()))
    name = "Bo" if listed else "{{name}}"
    if listed:
        await bench.bulk.add(APP, made.id, [Recipient(user, {"name": "Bo"}) for user in USERS])
        await bench.bulk.order(APP, made.id, JobOrder.START, bench.now)
    await walked(bench, made, piece=5)
    lease = await leased(bench)
    assert {item.notification.user_id: _said(item) for item in lease.items} == {
        user: _expected(user, name) for user in USERS
    }
    first, *others = lease.items
    targets = (Target(0, DeviceId("d"), APNS),)
    await bench.settle(lease, Settled(first.notification, (again(0, bench.now),), targets))
    looked_up = await bench.store.views.detail(APP, first.notification.id)
    waiting = await bench.store.views.detail(APP, others[0].notification.id)
    assert looked_up is not None and waiting is not None
    assert looked_up.record.notification.content == first.notification.content
    assert waiting.record.notification.content == others[0].notification.content
    bench.clock.advance(HOUR_MS)
    retried = {item.notification.id: item for item in (await leased(bench)).items}
    assert _said(retried[first.notification.id]) == _said(first)


async def test_jobs_on_parts_of_the_registry_tell_everybody_once(bench: Bench) -> None:
    """Each waits until it is started; a part's pieces leave out who is of another part, also where they lie between."""
    await registered(bench, *USERS)
    found: list[str] = []
    for n, (after, until) in enumerate(itertools.pairwise((0, 20, 60, 100)), start=1):
        part = Part("spring", after, until)
        made = await created(bench, msgspec.structs.replace(job(n), part=part, held=True))
        assert await walked(bench, made) == 0
        assert await bench.bulk.order(APP, made.id, JobOrder.START, bench.now) is JobState.RUNNING
        mine = [user for user in USERS if part.has(user)]
        assert await walked(bench, made, piece=3) == len(mine) > 0
        lease = await leased(bench)
        assert users_of(lease) == mine
        await bench.settle(lease, *(taken(item, bench.now) for item in lease.items))
        found += mine
    assert sorted(found) == USERS
