"""Campaigns on a store: everybody once from step to step, whoever dies, stops, resumes or changes their mind."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from tests.contract.bench import APP
from tests.contract.bulk_bench import leased
from tests.contract.campaign_bench import USERS, CampaignBench
from waypost.config import AppSettings, Config
from waypost.config.settings import CampaignSettings
from waypost.domain.bulk import JobState, Recipient
from waypost.domain.campaign import CampaignOrder, CampaignState
from waypost.domain.errors import ErrorCode, InvalidRequest, WaypostError
from waypost.domain.ids import CallerId, UserId
from waypost.domain.status import NotificationStatus
from waypost.domain.template import ChannelTexts, TemplateContent, Variable
from waypost.domain.time import HOUR_MS, later
from waypost.features.campaigns import ordering
from waypost.features.campaigns.jobs import begin_step, records_of
from waypost.features.campaigns.running import drop_old, tend
from waypost.features.campaigns.views import campaign_view
from waypost.features.templates.rendering import say

pytestmark = pytest.mark.asyncio

OTHER = CallerId("boss")
AUDIENCES: dict[str, dict[str, Any]] = {
    "a list": {},
    "the registry": {"recipients": None, "registry": {}},
    "a topic": {"recipients": None, "to": {"topic": "news"}},
}
RAMP = {"steps": [10, 30], "hold": 60, "max_failed": 0.2}
_S, _O = CampaignState, CampaignOrder


def _with_approval(campaign_bench: CampaignBench) -> None:
    settings = AppSettings(campaigns=CampaignSettings(approval=True))
    campaign_bench.ground = replace(campaign_bench.ground, config=Config(apps={APP: settings}))


@pytest.mark.parametrize("audience", AUDIENCES)
async def test_a_ramp_tells_some_then_more_then_all_each_once(campaign_bench: CampaignBench, audience: str) -> None:
    """A tenth, a third, all, by chance and not by name; each step a minute after the one before."""
    await campaign_bench.hear()
    await campaign_bench.put(ramp=RAMP, **AUDIENCES[audience])
    assert await campaign_bench.send() == []
    await campaign_bench.order(_O.SCHEDULE)
    first, second, third, *rest = await campaign_bench.rounds(4)
    assert [len(each) > 0 for each in (first, second, third)] == [True] * 3
    assert len(first) < len(second) < len(third)
    assert sorted(first + second + third) == USERS
    assert rest == [[]]
    assert first != USERS[: len(first)], "a sample, not those whose ids come first"
    ended = await campaign_bench.stands()
    assert (ended.state, len(ended.jobs)) == (_S.DONE, 3)
    assert await campaign_bench.counts() == {NotificationStatus.SENT: len(USERS)}
    await tend(campaign_bench.ground)
    assert await campaign_bench.campaigns.open() == []
    assert await campaign_bench.campaigns.recipients(APP, "spring", "", 9) == []


async def test_the_next_step_waits_for_its_time(campaign_bench: CampaignBench) -> None:
    await campaign_bench.put(ramp=RAMP)
    await campaign_bench.order(_O.SCHEDULE)
    await tend(campaign_bench.ground)
    await campaign_bench.send()
    for _ in range(3):
        await tend(campaign_bench.ground)
        assert await campaign_bench.send() == []
    campaign_bench.clock.advance(61_000)
    await tend(campaign_bench.ground)
    assert await campaign_bench.send() != []


async def test_a_ramp_stops_by_itself_where_too_much_fails_and_goes_on_where_somebody_says_so(
    campaign_bench: CampaignBench,
) -> None:
    """Nobody of the next step is told; what failed so far counts no more after that."""
    await campaign_bench.put(ramp=RAMP)
    await campaign_bench.order(_O.SCHEDULE)
    told = await campaign_bench.rounds(3, fails=lambda _: True)
    stopped = await campaign_bench.stands()
    assert (stopped.state, len(stopped.jobs), told[1:]) == (_S.PAUSED, 1, [[], []])
    assert stopped.why == f"{len(told[0])} of {len(told[0])} failed in step 1"
    await campaign_bench.order(_O.RESUME)
    assert sorted(told[0] + [user for each in await campaign_bench.rounds(5) for user in each]) == USERS
    assert (await campaign_bench.stands()).state is _S.DONE


async def test_a_large_step_stops_while_it_runs(campaign_bench: CampaignBench) -> None:
    """The last step too, once enough have ended to judge by."""
    await campaign_bench.put(ramp={"steps": [], "hold": 0, "max_failed": 0.5})
    await campaign_bench.order(_O.SCHEDULE)
    await tend(campaign_bench.ground)
    await campaign_bench.send(lambda _: True, 19)
    await tend(campaign_bench.ground)
    assert (await campaign_bench.stands()).state is _S.RUNNING
    await campaign_bench.send(lambda _: True, 1)
    await tend(campaign_bench.ground)
    assert (await campaign_bench.stands()).state is _S.PAUSED
    assert await campaign_bench.send() == []


async def test_pause_and_resume_tell_everybody_once(campaign_bench: CampaignBench) -> None:
    await campaign_bench.put()
    await campaign_bench.order(_O.SCHEDULE)
    await tend(campaign_bench.ground)
    told = await campaign_bench.send(n=25)
    await campaign_bench.order(_O.PAUSE)
    await tend(campaign_bench.ground)
    assert await campaign_bench.send() == []
    campaign_bench.clock.advance(HOUR_MS)
    await campaign_bench.order(_O.RESUME)
    await tend(campaign_bench.ground)
    assert sorted(told + await campaign_bench.send()) == USERS
    await tend(campaign_bench.ground)
    ended = await campaign_bench.stands()
    assert (ended.state, ended.ran_ms) == (_S.DONE, 0), "an hour's pause is no time that it ran"


async def test_cancelled_ones_tell_nobody_more(campaign_bench: CampaignBench) -> None:
    await campaign_bench.put(ramp=RAMP)
    await campaign_bench.order(_O.SCHEDULE)
    (told,) = await campaign_bench.rounds(1)
    await campaign_bench.order(_O.CANCEL)
    assert await campaign_bench.rounds(3) == [[], [], []]
    assert [each.state for each in await records_of(campaign_bench.ground, await campaign_bench.stands())] == [
        JobState.FINISHED
    ]
    assert (await campaign_bench.campaigns.open(), len(told) > 0) == ([], True)


@pytest.mark.parametrize(
    ("dies", "audience"),
    [("add", "a list"), ("save", "a list"), ("order", "a list"), ("save", "the registry"), ("order", "the registry")],
)
async def test_whoever_dies_while_a_step_begins_leaves_it_to_be_begun_once(
    campaign_bench: CampaignBench, dies: str, audience: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before each write of it: the next one makes the same job again, with the same list."""
    await campaign_bench.put(**AUDIENCES[audience])
    await campaign_bench.order(_O.SCHEDULE)
    store = campaign_bench.ground.store
    broken = store.campaigns if dies == "save" else store.bulk

    async def dead(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    begun = replace(await campaign_bench.stands(), state=_S.RUNNING, revision=99, running_since=campaign_bench.now)
    await store.campaigns.save(begun, (await campaign_bench.stands()).revision)
    with monkeypatch.context() as patched:
        patched.setattr(broken, dies, dead)
        with pytest.raises(KeyboardInterrupt):
            await begin_step(campaign_bench.ground, begun)
    assert await campaign_bench.send() == [], "nothing is sent before the step is begun"
    assert [user for each in await campaign_bench.rounds(2) for user in each] == USERS
    assert (await campaign_bench.stands()).state is _S.DONE
    assert len(await store.bulk_views.list(APP, None, 10)) == 1


async def test_two_processes_begin_a_step_once(campaign_bench: CampaignBench) -> None:
    """The role may be another's for a moment before the one before knows."""
    await campaign_bench.put()
    await campaign_bench.order(_O.SCHEDULE)
    await tend(campaign_bench.ground)
    seen = replace(await campaign_bench.stands(), jobs=(), revision=(await campaign_bench.stands()).revision - 1)
    assert await begin_step(campaign_bench.ground, seen) is None
    assert await campaign_bench.send() == USERS
    assert len(await campaign_bench.ground.store.bulk_views.list(APP, None, 10)) == 1


async def test_a_scheduled_one_begins_at_its_time(campaign_bench: CampaignBench) -> None:
    await campaign_bench.put()
    await campaign_bench.order(_O.SCHEDULE, at=later(campaign_bench.now, 2 * HOUR_MS))
    await campaign_bench.order(_O.SCHEDULE, at=later(campaign_bench.now, HOUR_MS))
    await tend(campaign_bench.ground)
    assert (await campaign_bench.stands()).state is _S.SCHEDULED
    campaign_bench.clock.advance(HOUR_MS)
    await tend(campaign_bench.ground)
    assert await campaign_bench.send() == USERS


async def test_another_person_approves_where_the_app_says_so_and_a_change_takes_it_back(
    campaign_bench: CampaignBench,
) -> None:
    _with_approval(campaign_bench)
    await campaign_bench.put()
    with pytest.raises(WaypostError) as refused:
        await campaign_bench.order(_O.SCHEDULE)
    assert refused.value.code is ErrorCode.WRONG_STATE
    with pytest.raises(WaypostError) as refused:
        await campaign_bench.order(_O.APPROVE)
    assert refused.value.code is ErrorCode.FORBIDDEN
    assert (await campaign_bench.order(_O.APPROVE, OTHER)).approved_by == OTHER
    changed = await campaign_bench.put(notification={"title": "Bigger sale"})
    assert (changed.state, changed.approved_by) == (_S.DRAFT, None)
    with pytest.raises(WaypostError):
        await campaign_bench.order(_O.SCHEDULE)
    await campaign_bench.order(_O.APPROVE, OTHER)
    await campaign_bench.order(_O.SCHEDULE)
    with pytest.raises(WaypostError):
        await campaign_bench.put(notification={"title": "Even bigger"})


async def test_whoever_adds_to_the_list_has_changed_the_campaign(campaign_bench: CampaignBench) -> None:
    """They cannot approve it any more, and what was approved takes no list."""
    _with_approval(campaign_bench)
    put = await campaign_bench.put(recipients=None, upload=True)
    given = [Recipient(UserId("u001"), {})]
    assert await campaign_bench.campaigns.add(APP, "spring", given, OTHER, campaign_bench.now)
    stands = await campaign_bench.stands()
    assert (stands.by, stands.listed, stands.revision) == (OTHER, 1, put.revision + 1)
    with pytest.raises(WaypostError) as refused:
        await campaign_bench.order(_O.APPROVE, OTHER)
    assert refused.value.code is ErrorCode.FORBIDDEN
    await campaign_bench.order(_O.APPROVE)
    more = [Recipient(UserId("u002"), {})]
    assert not await campaign_bench.campaigns.add(APP, "spring", more, OTHER, campaign_bench.now)
    stands = await campaign_bench.stands()
    assert (stands.state, stands.by, stands.listed) == (_S.APPROVED, OTHER, 1)


async def test_another_list_replaces_the_one_before_by_pages(
    campaign_bench: CampaignBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While the one before is deleted the campaign takes no list and cannot begin; whoever dies leaves it so."""
    monkeypatch.setattr(ordering, "LIST_PAGE", 7)
    await campaign_bench.put()
    others = ["v1", "v2"]

    async def dead(*_: Any) -> int:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(campaign_bench.campaigns, "clear_list", dead)
        with pytest.raises(KeyboardInterrupt):
            await campaign_bench.put(recipients=others)
    more = [Recipient(UserId("u002"), {})]
    assert not await campaign_bench.campaigns.add(APP, "spring", more, OTHER, campaign_bench.now)
    with pytest.raises(WaypostError):
        await campaign_bench.order(_O.SCHEDULE)
    assert (await campaign_bench.put(recipients=None, upload=True)).listed == 0
    assert await campaign_bench.campaigns.recipients(APP, "spring", "", 9) == []
    await campaign_bench.put()
    assert (await campaign_bench.put(recipients=others)).listed == 2
    kept = await campaign_bench.campaigns.recipients(APP, "spring", "", 9)
    assert [each.user_id for each in kept] == others
    assert await campaign_bench.campaigns.clear_list(APP, "spring", 9) == 0, "nothing is being replaced"


async def test_a_campaign_says_its_template_as_it_was_when_it_was_drafted(campaign_bench: CampaignBench) -> None:
    """A version that is published later is another campaign's, and one that is not there is refused."""
    templates = campaign_bench.ground.store.templates
    said = {"template": {"name": "sale"}}
    with pytest.raises(InvalidRequest) as refused:
        await campaign_bench.put(notification=said)
    assert refused.value.code is ErrorCode.UNKNOWN_TEMPLATE
    for n, word in enumerate(("Hello", "Bye"), 1):
        texts = {"default": ChannelTexts(title=word + " {{ name }}")}
        content = TemplateContent(texts, variables={"name": Variable(required=True)})
        await templates.put(APP, "sale", content, campaign_bench.now)
        await templates.publish(APP, "sale", n, campaign_bench.now)
        if n == 1:
            made = await campaign_bench.put(notification=said, recipients=[{"user_id": "u001", "name": "Ann"}])
            assert made.version is not None
    await campaign_bench.order(_O.SCHEDULE)
    await tend(campaign_bench.ground)
    await campaign_bench.walk()
    (item,) = (await leased(campaign_bench, 9)).items
    (shown,) = await say(campaign_bench.ground, [item.notification])
    assert (item.notification.user_id, shown.content.title) == ("u001", "Hello Ann")


async def test_a_list_stays_with_a_change_unless_the_texts_ask_for_more(campaign_bench: CampaignBench) -> None:
    named = {"title": "{{name}}, our sale"}
    await campaign_bench.put(recipients=None, upload=True, notification=named)
    given = [Recipient(UserId("u001"), {"name": "Bo"})] * 2
    assert await campaign_bench.campaigns.add(APP, "spring", given, OTHER, campaign_bench.now)
    assert (await campaign_bench.put(recipients=None, upload=True, notification=named | {"body": "Now"})).listed == 1
    assert (await campaign_bench.put(recipients=None, upload=True, notification={"title": "Sale"})).listed == 1
    with pytest.raises(InvalidRequest):
        await campaign_bench.put(notification=named)
    more = {"title": "{{name}}, {{city}}"}
    assert (await campaign_bench.put(recipients=None, upload=True, notification=more)).listed == 0
    with pytest.raises(WaypostError):
        await campaign_bench.order(_O.SCHEDULE)


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"recipients": None}, ""),
        ({"registry": {}}, ""),
        ({"notification": {"title": "Sale", "campaign": "autumn"}}, "notification.campaign"),
        ({"ramp": {"steps": [10, 1]}}, "ramp.steps"),
        ({"metric": "conversion"}, "conversion"),
        ({"notification": {"title": "Sale", "holdout": 5}}, "notification.holdout"),
        ({"notification": {"title": "{{name}}"}}, "recipients[0].name"),
        ({"recipients": None, "registry": {}}, "registry"),
    ],
)
async def test_what_makes_no_sense_is_refused_when_it_is_drafted(
    campaign_bench: CampaignBench, fields: dict[str, Any], path: str
) -> None:
    """The last one: the devices are not where the jobs are."""
    if path == "registry":
        elsewhere = replace(campaign_bench.ground.config, devices="cassandra")
        campaign_bench.ground = replace(campaign_bench.ground, config=elsewhere)
    with pytest.raises(InvalidRequest) as refused:
        await campaign_bench.put(**fields)
    assert [fault.path for fault in refused.value.faults] == [path]
    assert await campaign_bench.campaigns.get(APP, "spring") is None


async def test_an_erased_user_is_on_no_list(campaign_bench: CampaignBench) -> None:
    await campaign_bench.put()
    await campaign_bench.campaigns.erase(APP, UserId("u007"))
    assert (await campaign_bench.stands()).listed == len(USERS) - 1
    await campaign_bench.order(_O.SCHEDULE)
    assert (await campaign_bench.rounds(1))[0] == [user for user in USERS if user != "u007"]


async def test_old_ones_are_dropped(campaign_bench: CampaignBench) -> None:
    await campaign_bench.put()
    await campaign_bench.order(_O.SCHEDULE)
    await campaign_bench.rounds(2)
    assert await drop_old(campaign_bench.ground, later(campaign_bench.now, 89 * 24 * HOUR_MS)) == 0
    assert await drop_old(campaign_bench.ground, later(campaign_bench.now, 91 * 24 * HOUR_MS)) == 1
    assert await campaign_bench.campaigns.get(APP, "spring") is None


async def test_a_campaign_whose_step_surprises_is_paused_and_others_go_on(
    campaign_bench: CampaignBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    await campaign_bench.put()
    await campaign_bench.order(_O.SCHEDULE)
    await tend(campaign_bench.ground)

    async def broken(*_: Any) -> None:
        raise ValueError

    monkeypatch.setattr(campaign_bench.ground.store.bulk_views, "show", broken)
    await tend(campaign_bench.ground)
    monkeypatch.undo()
    stopped = await campaign_bench.stands()
    assert (stopped.state, stopped.why) == (_S.PAUSED, "its step ended with ValueError")


async def test_progress_says_how_long_it_will_take(campaign_bench: CampaignBench) -> None:
    await campaign_bench.put(ramp=RAMP, rate=None)
    await campaign_bench.order(_O.SCHEDULE)
    await tend(campaign_bench.ground)
    campaign_bench.clock.advance(10_000)
    told = await campaign_bench.send()
    view = campaign_view(
        await campaign_bench.stands(),
        await records_of(campaign_bench.ground, await campaign_bench.stands()),
        campaign_bench.now,
    )
    speed = len(told) / 10
    assert (view.step, view.steps, view.per_second) == (1, 3, round(speed, 1))
    assert view.seconds_left == round((len(USERS) - len(told)) / speed) + 2 * 60
