"""A forecast on a store: the audience of a list or a filter goes through the rules, and what is said is what comes."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from msgspec.structs import replace

from tests.contract.bench import APP
from tests.contract.bulk_bench import registered
from tests.contract.campaign_bench import CampaignBench
from waypost.config import AppSettings, Config
from waypost.config.settings import CampaignSettings, RateSettings
from waypost.domain.channel import APNS
from waypost.domain.credential import CredentialId
from waypost.domain.device import Platform
from waypost.domain.forecast import Forecast, ForecastChannel, ForecastQuota
from waypost.domain.ids import UserId
from waypost.domain.profile import Profile
from waypost.domain.routing import Candidate, Deferred, Question, RoutingTable, Rule
from waypost.domain.rules import with_rules
from waypost.domain.time import DAY_MS, HOUR_MS, later
from waypost.domain.variants import HOLDOUT, Split, Variant, variant_for
from waypost.features.campaigns.forecasting import forecast
from waypost.features.campaigns.holdout import RULE
from waypost.pipeline.explain import Explain

pytestmark = pytest.mark.asyncio

SPLIT = Split((Variant("a"), Variant("b")), holdout=30)
VARIED = {"title": "Sale", "variants": [{"name": "a"}, {"name": "b", "title": "Big sale"}], "holdout": 30}


async def _foreseen(campaign_bench: CampaignBench, *rules: Rule, **fields: Any) -> Forecast:
    await campaign_bench.put(**fields)
    table = RoutingTable({Platform("ios"): APNS}, {APP: {APNS: (CredentialId(APP, APNS),)}}, with_rules([RULE, *rules]))
    unused: Any = None
    explain = Explain(campaign_bench.store.devices, unused, unused, {}, table, {}, campaign_bench.clock, unused)
    return await forecast(campaign_bench.ground, explain, await campaign_bench.stands())


@pytest.mark.parametrize("listed", [True, False])
async def test_everybody_of_a_small_audience_is_accounted_for(campaign_bench: CampaignBench, listed: bool) -> None:
    """Opted out, held out, without a device, on another device, by variant: as each will be told."""
    await campaign_bench.store.opt_outs.put(APP, UserId("u001"), campaign_bench.now)
    await registered(campaign_bench, "web-1", platform="web")
    everybody = [f"u{n:03}" for n in range(60)]
    fields: dict[str, Any] = {"recipients": [*everybody, "nobody"]}
    if not listed:
        fields = {"recipients": None, "registry": {"platforms": ["ios"]}}
    made = await _foreseen(campaign_bench, notification=VARIED, **fields)
    variants = [variant_for(SPLIT, "spring", user) for user in everybody if user != "u001"]
    extra = [variant_for(SPLIT, "spring", "nobody")] if listed else []
    assert (made.recipients, made.left_out, made.exact) == (59 + len(extra), 1, True)
    assert made.variants == {name: (variants + extra).count(name) for name in ("a", "b", HOLDOUT)}
    held_out = variants.count(HOLDOUT)
    expected = {"sent": 59 - held_out, "suppressed": held_out}
    assert made.users == expected | ({"no_targets": 1} if listed else {})
    assert made.channels == (ForecastChannel("apns", 59 - held_out, 0, 0, {"holdout": held_out}),)


async def test_who_hears_a_topic_is_forecast_as_they_will_be_told(campaign_bench: CampaignBench) -> None:
    await campaign_bench.hear()
    made = await _foreseen(campaign_bench, recipients=None, to={"topic": "news"})
    assert (made.recipients, made.users) == (60, {"sent": 60})


async def test_a_local_time_is_everybodys_own(campaign_bench: CampaignBench) -> None:
    """Whoever is furthest west decides when it ends."""
    bench = campaign_bench
    for user, zone in (("u000", "Asia/Tokyo"), ("u001", "America/New_York")):
        await bench.ground.store.profiles.put(APP, UserId(user), Profile(time_zone=zone), bench.now)
    tomorrow = datetime.fromtimestamp((bench.now + DAY_MS) / 1000, ZoneInfo("America/New_York"))
    nine = tomorrow.replace(hour=9, minute=0, second=0, microsecond=0)
    said = {"title": "Sale", "send_at": nine.strftime("%Y-%m-%dT09:00")}
    made = await _foreseen(bench, notification=said)
    assert (made.users, made.ends_at) == ({"sent": 60}, round(nine.timestamp() * 1000))


async def test_what_rules_hold_back_is_told_with_its_end(campaign_bench: CampaignBench) -> None:
    """Each user is asked about at the time of their turn: here the night begins while the campaign runs."""
    night, morning = later(campaign_bench.now, 10_000), later(campaign_bench.now, HOUR_MS)

    def quiet(question: Question, _: Candidate) -> Deferred | None:
        return Deferred(morning) if question.now >= night else None

    made = await _foreseen(campaign_bench, Rule("quiet_hours", quiet), rate=3)
    assert made.users == {"sent": 30, "held_back": 30}
    assert (made.held_back, made.held_until, made.ends_at) == ({"quiet_hours": 30}, morning, morning)
    assert made.channels == (ForecastChannel("apns", 30, 0, 30, {}),)


async def test_pace_limits_and_waits_say_when_it_ends(campaign_bench: CampaignBench) -> None:
    """The slower of pace and limit, and the ramp's waits; without any, nobody knows."""
    assert (await _foreseen(campaign_bench)).ends_at is None
    assert (await _foreseen(campaign_bench, rate=10)).ends_at == later(campaign_bench.now, 6_000)
    settings = AppSettings(rates={"apns": RateSettings(refill_per_s=4)}, campaigns=CampaignSettings(sms_price=0.1))
    campaign_bench.ground = replace(campaign_bench.ground, config=Config(apps={APP: settings}))
    ramp = {"steps": [10, 30], "hold": 60, "max_failed": 0.1}
    limited = await _foreseen(campaign_bench, rate=10, ramp=ramp)
    assert limited.ends_at == later(campaign_bench.now, 15_000 + 2 * 60_000)
    assert limited.quota == (ForecastQuota("apns", 60, 4.0, 15),)


async def test_whose_turn_is_too_late_and_whose_token_is_old(campaign_bench: CampaignBench) -> None:
    late = await _foreseen(campaign_bench, rate=1, notification={"title": "Sale", "ttl": 30})
    assert late.users["expired"] > 0 and late.users["sent"] + late.users["expired"] == 60
    campaign_bench.clock.advance(271 * DAY_MS)
    assert (await _foreseen(campaign_bench)).dead_tokens == 60
