"""What came of a campaign's variants, counted on a store: by the roll-up, and by events of the app."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from tests.contract.bench import APP
from tests.contract.bulk_bench import leased, taken
from tests.contract.campaign_bench import USERS, CampaignBench
from tests.shows import shows
from waypost.domain.campaign import CampaignOrder
from waypost.domain.experiment import Verdict
from waypost.domain.ids import UserId
from waypost.domain.settlement import Change, Suppressed
from waypost.domain.status import DeliveryStatus
from waypost.domain.time import later
from waypost.domain.tracked import TrackedEvent
from waypost.domain.variants import HOLDOUT, Split, Variant, variant_for
from waypost.features.campaigns.results import ResultsView, results
from waypost.features.campaigns.running import tend
from waypost.ports.work import Settled, WorkItem

pytestmark = pytest.mark.asyncio

SPLIT = Split((Variant("a"), Variant("b")))
VARIED: dict[str, Any] = {"title": "Sale", "variants": [{"name": "a"}, {"name": "b", "title": "Big sale"}]}


async def _sent(bench: CampaignBench, opens: Callable[[str, str], bool], **fields: Any) -> None:
    """Run the campaign; who *opens* does, by user and variant."""
    await bench.put(**fields)
    await bench.order(CampaignOrder.SCHEDULE)
    await tend(bench.ground)
    await bench.walk()
    lease = await leased(bench)
    assert await bench.settle(lease, *(_settled(item, bench) for item in lease.items)) == []
    for item in lease.items:
        variant = item.notification.content.variant or ""
        if variant != HOLDOUT and opens(item.notification.user_id, variant):
            await bench.confirm(item.notification, 0, DeliveryStatus.OPENED)
    rows = await bench.store.journal.read(await bench.store.journal.position("rollup"), 1_000)
    await bench.ground.store.rollup.take(rows)


def _settled(item: WorkItem, bench: CampaignBench) -> Settled:
    told = taken(item, bench.now)
    if item.notification.content.variant != HOLDOUT:
        return told
    assert told.targets is not None
    targets = tuple(replace(each, suppressed=HOLDOUT) for each in told.targets)
    return Settled(told.notification, (Change(0, 1, Suppressed(HOLDOUT), bench.now),), targets)


async def _results(bench: CampaignBench) -> ResultsView:
    return await results(bench.ground, await bench.stands())


def _by_name(view: ResultsView) -> dict[str, tuple[int, int, Verdict]]:
    return {each.name: (each.sent, each.opened, each.verdict) for each in view.variants}


@shows("S3-119", "S3-121")
async def test_each_variant_is_counted_and_compared(campaign_bench: CampaignBench) -> None:
    """Nobody opens the one, most open the other: that is enough; the funnel is that of each."""
    await _sent(campaign_bench, lambda _, variant: variant == "b", notification=VARIED)
    split = [variant_for(SPLIT, "spring", user) for user in USERS]
    view = await _results(campaign_bench)
    a, b = split.count("a"), split.count("b")
    assert _by_name(view) == {"a": (a, 0, Verdict.CONTROL), "b": (b, b, Verdict.BETTER)}
    assert (view.verdict, view.is_split_right) == (Verdict.BETTER, True)
    assert view.variants[1].p is not None and view.variants[1].p < 0.05


@shows("S3-119")
async def test_a_difference_that_may_be_chance_is_not_enough_yet(campaign_bench: CampaignBench) -> None:
    opened = {user for n, user in enumerate(USERS) if n % 5 == 0}
    await _sent(campaign_bench, lambda user, _: user in opened, notification=VARIED)
    view = await _results(campaign_bench)
    assert (view.verdict, view.variants[1].verdict) == (Verdict.NOT_ENOUGH_YET, Verdict.NOT_ENOUGH_YET)


@shows("S3-121")
async def test_a_campaign_without_variants_has_its_funnel(campaign_bench: CampaignBench) -> None:
    await _sent(campaign_bench, lambda user, _: user < "u010")
    view = await _results(campaign_bench)
    assert (view.verdict, _by_name(view)) == (None, {"all": (len(USERS), 10, Verdict.CONTROL)})


async def test_a_conversion_is_an_event_after_the_campaign_of_whom_it_told(campaign_bench: CampaignBench) -> None:
    """Held out users count for silence; who bought before, was not in it, or did something else does not count."""
    bench, varied = campaign_bench, VARIED | {"holdout": 40}
    before = later(bench.now, -60_000)
    fields: dict[str, Any] = {"metric": "conversion", "conversion": "order_paid", "recipients": USERS[:50]}
    await _sent(bench, lambda *_: False, notification=varied, **fields)
    bench.clock.advance(1_000)
    bought = [TrackedEvent(APP, UserId(user), "order_paid", bench.now) for user in USERS[10:]]
    early = [TrackedEvent(APP, UserId(user), "order_paid", before) for user in USERS[:5]]
    other = [TrackedEvent(APP, UserId(user), "cart_filled", bench.now) for user in USERS[5:10]]
    await bench.ground.store.user_events.track([*bought, *early, *other])
    split = replace(SPLIT, holdout=40)
    told = [variant_for(split, "spring", user) for user in USERS[10:50]]
    view = await _results(bench)
    assert {each.name: each.successes for each in view.variants} == {
        name: told.count(name) for name in ("a", "b", HOLDOUT)
    }
    assert {each.name: each.rate for each in view.variants}[HOLDOUT] is None
