"""What a simulation says is what a lane does, and nothing of it is written."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from tests.contract.day import NEWS, day_of
from tests.contract.sql import SqlUnderTest, settings_of
from tests.unit.runtime.bench import APP
from waypost.bootstrap.simulation import proposal, simulating
from waypost.channels.inapp.settings import InappSettings
from waypost.config import AppSettings, Config
from waypost.domain.errors import ConfigurationError, InvalidRequest
from waypost.domain.ids import NotificationId
from waypost.domain.notification import Notification
from waypost.domain.preferences import Cap, PreferenceSettings, TypeSettings
from waypost.domain.quiet_hours import Hours
from waypost.domain.simulation import Difference, Ended, Ending, Moved, OfUser
from waypost.domain.submission import Defaults
from waypost.domain.time import DAY_MS, HOUR_MS, MINUTE_MS, from_datetime, later

pytestmark = pytest.mark.asyncio

TODAY = AppSettings(
    senders={"apns": object(), "inapp": InappSettings()},
    types={NEWS: TypeSettings(quiet_hours="merge", cap=Cap(limit=2, over="degrade"))},
    preferences=PreferenceSettings(quiet_hours=Hours.parse("22:00-07:00"), cap=Cap(limit=3)),
)
PROPOSED = {
    "types": {"news": {"quiet_hours": "skip", "cap": {"limit": 1, "over": "drop"}}},
    "preferences": {"quiet_hours": "21:00-07:00"},
}


def config_of(ledger: SqlUnderTest, app: AppSettings = TODAY) -> Config:
    """A configuration of the store under test."""
    return Config(store=settings_of(ledger.url), apps={APP: app})


def quiet(_done: int, _of: int) -> None:
    """Show no progress."""


def ends(made: Difference) -> dict[str, tuple[int, int]]:
    """How many end in which way, before and after."""
    return {f"{each.ending}/{each.reason or ''}": (each.before, each.after) for each in made.ends}


async def test_what_is_simulated_is_what_a_lane_did_and_nothing_is_written(
    ledger_store: SqlUnderTest, tmp_path: Path
) -> None:
    """A day with too many, a feed that is named, and a night, told by a lane; the same policy says the same of it."""
    config = config_of(ledger_store)
    day = await day_of(ledger_store, tmp_path, config)
    start, told = day.bench.clock.now(), list[NotificationId]()
    for hours, channels in ((0, ()), (1, ()), (1, ()), (1, ("push", "inapp")), (12, ()), (1, ())):
        day.bench.clock.advance(hours * HOUR_MS)
        told.append(await day.told(*channels))
    day.bench.clock.advance(9 * HOUR_MS + MINUTE_MS)
    await day.turn()
    did = [await day.fate(each) for each in told]
    assert [[status for _, status, _ in each] for each in did] == [
        ["sent"],
        ["sent"],
        ["suppressed"],
        ["suppressed", "sent"],
        ["suppressed"],
        ["suppressed"],
    ]
    before = await ledger_store.cells()
    async with simulating(APP, config, config) as simulator:
        items, is_whole = await simulator.recorded(start, later(start, DAY_MS), 100)
        assert ([each.id for each in items], is_whole) == (told, True)
        made = await simulator.difference(items, 10, quiet)
        seen = [(await simulator.explained(each, None))[0].fate.ending for each in told]
        some, is_whole = await simulator.recorded(start, later(start, DAY_MS), 2)
        assert ([each.id for each in some], is_whole) == (told[-2:], False)
    assert seen == [*[Ending.SENT] * 2, *[Ending.DEGRADED] * 2, *[Ending.MERGED] * 2]
    assert ends(made) == {"sent/": (2, 2), "merged/": (2, 2), "degraded/": (2, 2)}
    assert (made.changed, made.digests.before, made.digests.after) == (0, 1, 1)
    assert await ledger_store.cells() == before


async def test_the_difference_of_a_proposed_policy_is_told_by_user_type_hour_and_ending(
    ledger_store: SqlUnderTest, tmp_path: Path
) -> None:
    config = config_of(ledger_store)
    file = tmp_path / "proposed.json"
    file.write_bytes(msgspec.json.encode(PROPOSED))
    day = await day_of(ledger_store, tmp_path, config)
    start = day.bench.clock.now()
    told = [await day.told(), await day.told()]
    day.bench.clock.advance(13 * HOUR_MS + HOUR_MS // 2)  # 21:30: night has begun where it begins at nine
    told.append(await day.told("inapp"))
    day.bench.clock.advance(HOUR_MS)
    told.append(await day.told())
    async with simulating(APP, config, proposal(config, APP, file)) as simulator:
        items, _ = await simulator.recorded(start, later(start, DAY_MS), 100)
        made = await simulator.difference(items, 1, quiet)
        before, after = await simulator.explained(told[3], start)
    assert ends(made) == {
        "sent/": (2, 1),
        "merged/": (1, 0),
        "feed/": (1, 1),
        "suppressed/frequency_limit": (0, 1),
        "suppressed/quiet_hours": (0, 1),
    }
    assert {each.becomes: each.count for each in made.moves} == {
        "suppressed (frequency_limit)": 1,
        "suppressed (quiet_hours)": 1,
    }
    assert made.moves[0] == Moved("sent", "suppressed (frequency_limit)", 1, made.moves[0].example)
    assert made.top_users == (OfUser("ann", 3, 1, 2),)
    assert [(each.hour, each.before, each.after) for each in made.hours if each.before or each.after] == [
        (7, 1, 0),
        (8, 2, 1),
    ]
    (news,) = made.types
    assert (news.type, Ended(Ending.SENT, None, 2, 1) in news.ends) == ("news", True)
    assert [ruling.rule for ruling in after.decided[-1].rulings] == ["quiet_hours"]
    assert (before.fate.ending, after.fate.ending) == (Ending.MERGED, Ending.SUPPRESSED)


async def test_a_file_of_submissions_is_taken_in_as_each_policy_would(
    ledger_store: SqlUnderTest, tmp_path: Path
) -> None:
    """What a submission does not say is said by each policy's defaults; a fallback is needed where all else is held."""
    app = replace(TODAY, defaults=Defaults(ttl_s=HOUR_MS // 1000))
    config = config_of(ledger_store, app)
    await day_of(ledger_store, tmp_path, config)
    noon, night = "2027-01-15T12:00:00Z", "2027-01-15T23:00:00Z"
    lines: list[dict[str, object]] = [
        {"at": noon, "user_id": "ann", "title": "Sale", "type": "sale"},
        {"at": night, "user_id": "ann", "title": "Sale", "type": "sale"},
        {"at": night, "user_id": "ann", "title": "Sale", "type": "sale", "ttl": 36_000},
        {"at": night, "user_id": "bob", "title": "Sale", "type": "sale"},
        {"at": noon, "user_id": "ann", "title": "Sale", "channels": ["sms"]},
    ]
    traffic, policy = tmp_path / "traffic.jsonl", tmp_path / "policy.yaml"
    traffic.write_bytes(b"\n".join(map(msgspec.json.encode, lines)))
    policy.write_text(
        "types: {sale: {quiet_hours: skip, ttl_s: 36000}}\n"
        "defaults: {channels: [{to: push, for: 30s}, inapp]}\n"
        "preferences: {quiet_hours: '22:00-07:00'}\n"
    )
    async with simulating(APP, config, proposal(config, APP, policy)) as simulator:
        items = await simulator.read(traffic, 100)
        made = await simulator.difference(items, 10, quiet)
    assert ends(made) == {
        "sent/": (1, 1),
        "deferred/quiet_hours": (1, 0),
        "feed/": (0, 1),
        "feed/quiet_hours": (0, 2),
        "expired/": (1, 0),
        "no_targets/": (1, 0),
        "refused/channels[0]: the app has no sms account; it has apns, inapp, push: put"
        " `sms: {account_sid: …, auth_token_file: …}` under the app in waypost.yaml": (1, 1),
    }
    assert isinstance(items[0].before, Notification)
    assert items[0].before.created_at == from_datetime(datetime.fromisoformat(noon))
    traffic.write_text('{"user_id": "ann", "title": "Sale"}')
    async with simulating(APP, config, config) as simulator:
        with pytest.raises(InvalidRequest, match="at"):
            await simulator.read(traffic, 100)


async def test_what_a_cap_holds_is_looked_at_again_when_there_is_room(
    ledger_store: SqlUnderTest, tmp_path: Path
) -> None:
    """Also of a type that is merged by night: by day nothing of it is in a digest."""
    types = {NEWS: TypeSettings(quiet_hours="merge", cap=Cap(limit=1, per="1h"))}
    config = config_of(ledger_store, replace(TODAY, types=types))
    await day_of(ledger_store, tmp_path, config)
    traffic, said = tmp_path / "traffic.jsonl", {"user_id": "ann", "title": "News", "type": "news"}
    lines = [{"at": f"2027-01-15T12:{minute:02}:00Z"} | said for minute in (0, 10)]
    traffic.write_bytes(b"\n".join(map(msgspec.json.encode, lines)))
    async with simulating(APP, config, config) as simulator:
        made = await simulator.difference(await simulator.read(traffic, 100), 10, quiet)
    assert ends(made) == {"sent/": (1, 1), "deferred/frequency_limit": (1, 1)}
    assert [(each.hour, each.after) for each in made.hours if each.after] == [(12, 1), (13, 1)]


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ('{"limits": {}}', "limits: is no part of a policy"),
        ('{"types": {"news": {"colour": 1}}}', r"apps.demo.types.news.colour: unknown key"),
        ('{"time_zone": "Mars/Base"}', r"apps.demo.time_zone: no time zone"),
        ('{"types": ', "line 2"),
    ],
)
async def test_a_proposal_that_makes_no_sense_is_named(tmp_path: Path, said: str, why: str) -> None:
    file = tmp_path / "proposed.json"
    file.write_text(said)
    with pytest.raises(ConfigurationError, match=why):
        proposal(Config(apps={APP: TODAY}), APP, file)
