"""A campaign by real processes: forecast, begun slowly, killed, paused and resumed; every user's fate is accounted for.

`make campaign SIZE=200000` is the long form of it.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import random
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.journeys.balance import compare_with_sheet, listed
from tests.journeys.harness import Json, Kill, Service, running, until
from tests.shows import shows
from waypost.domain.variants import HOLDOUT, Split, Variant, variant_for

SIZE = int(os.environ.get("WAYPOST_CAMPAIGN_SIZE", "240"))
RATE = max(120, SIZE // 20)
"""Slow enough that there is a middle to be killed and paused in."""
DEADLINE_S = 60 + SIZE / 50
NAME = "spring"
SPLIT = Split((Variant("plain"), Variant("named")), holdout=20)
VARIANTS = [{"name": "plain"}, {"name": "named", "title": "{{name}}, our sale begins"}]
NOTIFICATION = {"title": "Our sale begins", "body": "Today only.", "type": "promotion"}
CAMPAIGN: Json = {
    "notification": NOTIFICATION | {"variants": VARIANTS, "holdout": 20},
    "variables": {"name": "Dear friend"},
    "rate": RATE,
    "ramp": {"steps": [10], "hold": 1, "max_failed": 0.5},
}
PASSER_BY = "passer-by"
CHANNELS = {"ios": "apns", "android": "fcm"}
OPEN = ("pending", "processing")
ZONES = {0: "Etc/GMT", 4: "Etc/GMT-4", 8: "Etc/GMT-8", 12: "Etc/GMT-12", 16: "Etc/GMT+8", 20: "Etc/GMT+4"}
"""Six zones by their hours from UTC, round the clock."""
QUIET = (4, 8)
"""The zones where it is night, two hours from its beginning and end."""


def _settings() -> Json:
    """Types, night and cap of the app, so that no clock crosses a boundary while the campaign runs."""
    now = datetime.now(UTC)
    begins, ends = now + timedelta(hours=QUIET[0] - 2), now + timedelta(hours=QUIET[1] + 2)
    cap = {"limit": 1, "per": "24h", "over": "drop"}
    return {
        "types": {"promotion": {"quiet_hours": "skip", "cap": cap}},
        "preferences": {"quiet_hours": f"{begins:%H:%M}-{ends:%H:%M}"},
    }


class Users:
    """The users of the campaign: most with devices, some without, some opted out."""

    def __init__(self, size: int) -> None:
        self.all = [f"user-{n}" for n in range(size)]
        self.opted_out = set(self.all[::40])
        self.zones = {user: list(ZONES)[n % len(ZONES)] for n, user in enumerate(self.all)}
        self.told_before = [user for n, user in enumerate(self.all) if n % 12 == 3 and n < 600]
        """Users who had a promotion today: one is what the cap allows."""
        self.unwilling = set(self.all[5:600:30])
        """Users who want no promotions."""
        self.devices: dict[str, dict[str, str]] = {}
        """The token of each user by platform."""

    def variant(self, user: str) -> str:
        """The variant that a user must be told, whoever asks."""
        return variant_for(SPLIT, NAME, user)

    async def register(self, service: Service) -> None:
        """Register them: one with both devices, one with none, three with one."""
        kinds = itertools.cycle((("ios",), ("android",), ("ios", "android"), ("android",), ()))
        tokens = {platform: await _tokens(service, platform, len(self.all)) for platform in CHANNELS}
        for user, platforms in zip(self.all, kinds, strict=False):
            self.devices[user] = {platform: tokens[platform].pop() for platform in platforms}
        waiting = iter([(user, *one) for user, owned in self.devices.items() for one in owned.items()])

        async def registrar() -> None:
            for user, platform, token in waiting:
                status, answer = await service.ask(
                    "PUT", f"/v1/devices/{user}/{platform}", {"platform": platform, "token": token}
                )
                assert status in (200, 201), answer

        await asyncio.gather(*(registrar() for _ in range(16)))
        for user in self.opted_out:
            await service.ask("PUT", f"/v1/users/{user}/bulk-opt-out")
        for user in self.unwilling:
            await service.ask("PATCH", f"/v1/users/{user}/preferences", {"types": {"promotion": {"enabled": False}}})
        zones = "".join(f'{{"user_id": "{user}", "time_zone": "{ZONES[at]}"}}\n' for user, at in self.zones.items())
        status, answer = await service.upload("/v1/users", zones.encode(), "POST")
        assert status == 200, answer

    async def tell_some(self, service: Service) -> set[str]:
        """Send a promotion to some before the campaign; the ids."""
        ids = set()
        for user in self.told_before:
            status, made = await service.ask("POST", "/v1/notifications", NOTIFICATION | {"user_id": user})
            assert status == 202, made
            ids.add(made["id"])

        async def are_over() -> bool:
            everything = await listed(service)
            return all(everything[one]["status"] not in OPEN for one in ids)

        await until(are_over, "whoever is told before has it")
        return ids

    def reason(self, user: str) -> str | None:
        """Why nothing is sent to a user who has a device."""
        if user in self.unwilling:
            return "preference"
        if self.zones[user] in QUIET:
            return "quiet_hours"
        if user in self.told_before:
            return "frequency_limit"
        return HOLDOUT if self.variant(user) == HOLDOUT else None

    def fates(self) -> dict[str, str]:
        """What must become of each user."""
        fates = {}
        for user in self.all:
            if user in self.opted_out:
                continue
            if not self.devices[user]:
                fates[user] = "no_targets"
            else:
                fates[user] = "suppressed" if self.reason(user) is not None else "sent"
        return fates


async def _tokens(service: Service, platform: str, n: int) -> list[str]:
    found: list[str] = []
    while len(found) < n:
        asked = {"platform": platform, "count": min(50_000, n - len(found))}
        found += (await service.lab.ask("POST", "/tokens", asked))["tokens"]
    return found


async def _campaign(service: Service) -> Json:
    status, campaign = await service.ask("GET", f"/v1/campaigns/{NAME}")
    assert status == 200, campaign
    return campaign


async def _order(service: Service, order: str) -> Json:
    status, campaign = await service.ask("POST", f"/v1/campaigns/{NAME}/{order}")
    assert status == 200, campaign
    return campaign


async def _settled(service: Service, least: int) -> Json:
    async def far_enough() -> Json | None:
        campaign = await _campaign(service)
        done = sum(n for status, n in campaign["counts"].items() if status not in OPEN)
        return campaign if done >= least else None

    found: Json = await until(far_enough, f"{least} users are through", DEADLINE_S)
    return found


async def _drafted(service: Service, users: Users) -> None:
    status, made = await service.ask("PUT", f"/v1/campaigns/{NAME}", CAMPAIGN | {"upload": True})
    assert status == 201, made
    for start in range(0, len(users.all), 50_000):
        lines = "".join(f'{{"user_id": "{user}"}}\n' for user in users.all[start : start + 50_000])
        status, made = await service.upload(f"/v1/campaigns/{NAME}/recipients", lines.encode())
        assert status == 200, made
    assert made["listed"] == len(users.all)


async def _at_rest(service: Service) -> Counter[str]:
    """How many of each status there are once nothing is on its way."""

    async def still() -> Json | None:
        before = await _campaign(service)
        await service.ask("GET", "/health/ready")
        after = await _campaign(service)
        return after if before["counts"] == after["counts"] and not after["counts"].get("processing") else None

    found: Json = await until(still, "nothing is on its way", DEADLINE_S)
    return Counter(found["counts"])


async def _somebody_else_is_told(service: Service) -> None:
    """Wait until workers have done something else."""
    _, made = await service.ask("POST", "/v1/notifications", {"user_id": PASSER_BY, "title": "Hello"})

    async def ended() -> bool:
        told = (await service.ask("GET", f"/v1/notifications/{made['id']}"))[1]
        return told["notification"]["finished_at"] is not None

    await until(ended, "workers work", DEADLINE_S)


async def _killed_and_paused(service: Service, users: Users, rng: random.Random) -> list[Kill]:
    """Kill a worker, pause, kill everything while it is paused, resume."""
    await _settled(service, len(users.all) // 5)
    kills = [await service.kill(rng.choice(service.worker_pids()))]
    await _settled(service, len(users.all) // 3)
    assert (await _order(service, "pause"))["state"] == "paused"
    kills.append(await service.kill(service.pid))
    await service.start()
    assert (await _campaign(service))["state"] == "paused"
    resting = await _at_rest(service)  # what was on its way when it was paused has ended
    await _somebody_else_is_told(service)
    assert await _at_rest(service) == resting, "nobody was told while it was paused"
    assert (await _order(service, "resume"))["state"] == "running"
    return kills


def _compare_with_forecast(forecast: Json, fates: Counter[str], users: Users) -> None:
    assert (forecast["recipients"], forecast["left_out"]) == (fates.total(), len(users.opted_out))
    close = pytest.approx if not forecast["exact"] else lambda given, **_: given
    assert forecast["users"] == {name: close(n, rel=0.15) for name, n in fates.items()}


def _reasons(forecast: Json) -> Counter[str]:
    found: Counter[str] = Counter()
    for each in forecast["channels"]:
        found.update(each["suppressed"])
    return found


def _sent_by_channel(users: Users, copies: dict[str, dict[str, int]]) -> Counter[str]:
    channel_of = {token: CHANNELS[platform] for owned in users.devices.values() for platform, token in owned.items()}
    return Counter(channel_of[token] for tokens in copies.values() for token in tokens)


@shows("S3-119")
@pytest.mark.timeout(0 if SIZE > 1_000 else 300)
@pytest.mark.asyncio
async def test_a_campaign_does_what_was_forecast_whoever_dies(tmp_path: Path, rng: random.Random) -> None:
    """One notification for each user, in the variant that is theirs; a copy only where a kill explains it."""
    users = Users(SIZE)
    async with running(tmp_path, workers=2, app=_settings()) as service:
        await users.register(service)
        before = await users.tell_some(service)
        await _drafted(service, users)
        status, forecast = await service.ask("GET", f"/v1/campaigns/{NAME}/forecast")
        assert status == 200, forecast
        await _order(service, "start")
        kills = await _killed_and_paused(service, users, rng)

        async def over() -> Any:
            campaign = await _campaign(service)
            assert campaign["state"] in ("running", "done"), campaign
            return campaign if campaign["state"] == "done" else None

        done = await until(over, "the campaign is done", DEADLINE_S)
        fates = users.fates()
        assert done["counts"] == Counter(fates.values())
        everything = await listed(service)
        details = {id_: one for id_, one in everything.items() if id_ not in before and one["user_id"] != PASSER_BY}
        assert {each["user_id"]: each["status"] for each in details.values()} == fates
        assert len(details) == len(fates), "one notification for each"
        arrived = await service.lab.copies()
        copies = {id_: tokens for id_, tokens in arrived.items() if id_ not in before}
        expected = {id_: sorted(users.devices[one["user_id"]].values()) for id_, one in details.items()}
        assert {id_: sorted(tokens) for id_, tokens in copies.items()} == {
            id_: tokens for id_, tokens in expected.items() if details[id_]["status"] == "sent"
        }
        await compare_with_sheet(service, everything, sum(len(tokens) for tokens in arrived.values()))
        _compare_with_forecast(forecast, Counter(fates.values()), users)
        sent = _sent_by_channel(users, copies)
        if forecast["exact"]:
            assert {each["channel"]: each["send"] for each in forecast["channels"]} == sent
            assert forecast["variants"] == Counter(users.variant(user) for user in fates)
            reasons = Counter(users.reason(user) for user in fates for _ in users.devices[user])
            assert _reasons(forecast) == {reason: n for reason, n in reasons.items() if reason is not None}
        twice = [one for tokens in copies.values() for one in tokens.values() if one > 1]
        assert len(twice) <= SIZE // 10 and len(kills) == 2
        await _compare_variants(service, users, details)


async def _compare_variants(service: Service, users: Users, details: dict[str, Json]) -> None:
    """What is on record says the variant of each, and its words arrived."""
    titles = {"plain": "Our sale begins", "named": "Dear friend, our sale begins"}
    for id_, one in itertools.islice(details.items(), 60):
        _, detail = await service.ask("GET", f"/v1/notifications/{id_}")
        content = detail["content"]
        variant = users.variant(one["user_id"])
        assert (content["campaign"], content["variant"]) == (NAME, variant)
        reasons = {each["reason"] for each in detail["receipts"]}
        reason = users.reason(one["user_id"])
        if reason == "frequency_limit" and variant == HOLDOUT:
            reason = HOLDOUT  # caps count what is about to be sent; a forecast only looks at them
        assert reasons <= {reason}, detail
        if one["status"] == "sent":
            arrived = await service.lab.arrivals(id_)
            held = [each for each in arrived if "payload" in each]  # the lab holds the bodies that came last
            assert held == arrived if SIZE <= 1_000 else arrived
            assert all(titles[variant] in str(each) for each in held)
