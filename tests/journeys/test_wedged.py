"""A connection to the provider that lives, answers PING, and answers no request any more: all else goes on."""

from __future__ import annotations

import random
from functools import partial
from pathlib import Path

import pytest

from tests.hurry import HURRIED
from tests.journeys.balance import final_stories
from tests.journeys.harness import Service, running, until
from tests.journeys.load import Audience, Entry, Load
from tests.shows import shows

WEDGED, AFTER = 5, 20
SILENT = {"black_hole": {"scope": "streams", "accept": True}}
WEDGE = {"where": "apns", "match": {"times": 1}, "do": {"black_hole": {"scope": "streams", "accept": True}}}


@pytest.mark.asyncio
async def test_what_is_accepted_after_a_wedge_goes_over_another_connection(tmp_path: Path, rng: random.Random) -> None:
    """Unknown is nothing but what was on the wedged connection; all that is accepted later is sent, each once."""
    async with running(tmp_path, sitecustomize=HURRIED, workers=1) as service:
        audience = Audience(service)
        await audience.register(1, (("ios",),), prefix="wedged")
        load = Load(service, audience, rng)
        first = await _told(load)
        await until(partial(service.is_sent, first.id), "the connection is in use")
        await service.lab.script(WEDGE)
        opened = await _opened(service)
        wedged = [await _told(load) for _ in range(WEDGED)]

        async def another() -> bool:
            return await _opened(service) > opened

        await until(another, "another connection takes the place of the wedged one")
        after = [await _told(load) for _ in range(AFTER)]
        details = await final_stories(service, load.ledger)
        ends = {id_: detail["status"] for id_, detail in details.items()}
        assert {ends[entry.id] for entry in wedged} == {"unknown"}
        assert {ends[entry.id] for entry in after} == {"sent"}
        copies = await service.lab.copies()
        assert all(sum(copies[entry.id].values()) == 1 for entry in [first, *wedged, *after])


@shows("S3-28")
@pytest.mark.asyncio
async def test_a_create_call_is_answered_before_the_provider_answers(tmp_path: Path, rng: random.Random) -> None:
    """Requirements S3-28: a provider that answers nothing for as long as it likes has no part in the answer."""
    async with running(tmp_path, workers=1) as service:
        audience = Audience(service)
        await audience.register(1, (("ios",),))
        await service.lab.script({"where": "apns", "do": SILENT})
        load = Load(service, audience, rng)
        told = [await _told(load) for _ in range(WEDGED)]

        async def asked() -> bool:
            return (await service.lab.met())[0] > 0

        await until(asked, "the provider has the first of them")

        async def all_are_processed() -> bool:
            details = [(await service.ask("GET", f"/v1/notifications/{entry.id}"))[1] for entry in told]
            return [detail["notification"]["status"] for detail in details] == ["processing"] * WEDGED

        await until(all_are_processed, "each is with a worker, and none has an outcome")


async def _told(load: Load) -> Entry:
    plain = {"scheduled_at": None, "kind": "visible", "title": "News", "urgency": "normal"}
    return await load.submit(load.compose(**plain, user_id=load.users[0], guarantee="at_most_once"))


async def _opened(service: Service) -> int:
    counts = await service.lab.ask("GET", "/counts")
    opened: int = counts["apns"]["connections_opened"]
    return opened
