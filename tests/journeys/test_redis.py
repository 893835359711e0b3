"""Redis beside the store, as its page says: delivery goes on whatever becomes of it."""

from __future__ import annotations

import asyncio
import random
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from scripts.services.redis import Redis
from tests.journeys.balance import balance
from tests.journeys.harness import Service, running, until
from tests.journeys.load import Audience, Load
from tests.journeys.test_log_stack import log_stack
from tests.shows import shows
from tests.survival import Survived

PAGE = (Path(__file__).parents[2] / "docs" / "redis.md").read_text(encoding="utf-8")
LOOKUPS = re.compile(r'waypost_cache_lookups_total\{.*?result="(\w+)".*?\} (\S+)')


@shows("S1-118")
@pytest.mark.survives(
    "Redis killed, frozen, emptied",
    on="cache of devices",
    so="slower and never wrong, delivery goes on, recovery by itself",
)
@pytest.mark.asyncio
async def test_delivery_goes_on_while_redis_is_killed_frozen_emptied_and_back(
    tmp_path: Path, rng: random.Random, redis_alone: Redis, survived: Survived
) -> None:
    """With the settings of the quick start; what was promised is kept, and the cache is used again by itself."""
    written = re.search(r"Add this.*?```yaml\n(.*?)```", PAGE, re.DOTALL)
    assert written is not None
    settings = yaml.safe_load(written[1].replace("redis://127.0.0.1:6379/0", redis_alone.url))
    async with running(tmp_path, workers=2, **settings) as service:
        assert await run(service, "check-config", "--connect") == await promised(service)
        audience = Audience(service)
        await audience.register(20)
        (tmp_path / "users.txt").write_text("\n".join(audience.tokens))
        said = await run(service, "devices", "warm", "--app", "demo", "--file", str(tmp_path / "users.txt"))
        assert said == f"20 users with {sum(map(len, audience.tokens.values()))} devices are cached\n"
        load = Load(service, audience, rng, guarantee="at_least_once")
        callers = asyncio.create_task(load.run(8, limit=1_000_000, pause_s=0.01))
        await load.grown(100)
        assert (await lookups(service))["hit"] > 0
        redis_alone.kill()
        await load.grown(100)
        await until(lambda: bypassed(service), "look-ups go past Redis")
        redis_alone.start()
        await until(lambda: logged(service, "redis.back"), "Redis is found again")
        redis_alone.freeze()
        await load.grown(100)
        redis_alone.thaw()
        await until(lambda: more_hits(service), "the cache is used again")
        redis_alone.ask(redis_alone.node(1), "FLUSHALL")
        await load.grown(100)
        load.stop()
        await callers
        result = await balance(service, load.ledger)
        assert result.duplicates == 0
        survived(**result.row(), **{f"lookups {name}": count for name, count in (await lookups(service)).items()})


@shows("S1-122", "S1-123")
@pytest.mark.long
@pytest.mark.survives(
    "Redis killed", on="log", so="dedup open with a flag, 503 for a key of the caller, recovery by itself"
)
@pytest.mark.asyncio
async def test_the_log_knows_what_was_said_before_by_redis_and_goes_on_without_it(
    tmp_path: Path, redis_alone: Redis, kafka_bootstrap: str, kafka_prefix: str
) -> None:
    """Requirement S1-122: while Redis is away a caller's own key gets 503, everything else is accepted and flagged."""
    settings = await log_stack(kafka_bootstrap, kafka_prefix) | {"redis": {"url": redis_alone.url}, "dedup": "redis"}
    async with running(tmp_path, workers=1, **settings) as service:
        said = {"user_id": "nobody", "title": "Said before", "idempotency_key": "k"}
        status, first = await service.ask("POST", "/v1/notifications", said)
        assert status == 202
        status, again = await service.ask("POST", "/v1/notifications", said)
        assert (status, again["id"]) == (200, first["id"])
        status, refused = await service.ask("POST", "/v1/notifications", said | {"title": "Something else"})
        assert (status, refused["code"]) == (409, "idempotency_conflict")
        redis_alone.kill()
        await until(lambda: logged(service, "redis.away"), "Redis is missed")
        status, _ = await service.ask("POST", "/v1/notifications", said, once=True)
        assert status == 503
        for _ in range(2):
            status, _ = await service.ask(
                "POST", "/v1/notifications", {"user_id": "nobody", "title": "Said twice", "dedup_window": 60}
            )
            assert status == 202
        assert service.log("dedup.open")
        redis_alone.start()

        async def known() -> bool:
            status, answer = await service.ask("POST", "/v1/notifications", said)
            return status == 200 and bool(answer["id"] == first["id"])

        await until(known, "what was said before the crash is known after it")


async def run(service: Service, *command: str) -> str:
    """What a command of the service's operator prints."""
    whole = [sys.executable, "-m", "waypost.cli", *command, "--config", str(service.config_path)]
    done = await asyncio.to_thread(subprocess.run, whole, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


async def promised(service: Service) -> str:
    """What check-config prints, with the line about Redis as the page shows it."""
    shown = re.search(r"^redis +Redis [\d.]+, append-only file, noeviction$", PAGE, re.MULTILINE)
    assert shown is not None
    said = await run(service, "check-config", "--connect")
    assert re.search(re.sub(r"[\d.]+", r"[\\d.]+", shown[0], count=1), said), said
    return said


async def lookups(service: Service) -> dict[str, int]:
    """Users looked up so far, by what came of it."""
    async with service._session.get(service.url + "/metrics") as answer:
        return {result: int(float(n)) for result, n in LOOKUPS.findall(await answer.text())}


async def bypassed(service: Service) -> bool:
    """Whether a look-up went to the store past Redis."""
    return (await lookups(service)).get("bypassed", 0) > 0


async def more_hits(service: Service) -> bool:
    """Whether Redis answers some more."""
    before = (await lookups(service))["hit"]
    await asyncio.sleep(0.05)  # the load goes on meanwhile; who calls asks again
    return (await lookups(service))["hit"] > before


async def logged(service: Service, event: str) -> bool:
    """Whether it was."""
    return bool(service.log(event))
