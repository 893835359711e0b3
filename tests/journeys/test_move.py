"""An installation backed up while it serves, and one that moves from SQLite to PostgreSQL: what is open ends once."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.journeys.balance import balance, listed
from tests.journeys.harness import Service, running, until
from tests.journeys.load import called
from tests.journeys.processes import environment_of_a_service

pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(300)]

LATER_S = 20
"""Seconds ahead for which some are scheduled: past the move, on a quiet machine."""
DOWN = {"do": {"answer": {"status": 503}}}


async def command(service: Service, *words: str, status: int = 0) -> Any:
    """Run a command with the service's configuration; what it answers, or its one line on stderr."""
    said = [sys.executable, "-m", "waypost.cli", *words, "--config", str(service.config_path), "--json"]
    done = await asyncio.to_thread(
        subprocess.run, said, env=environment_of_a_service(None), capture_output=True, text=True, check=False
    )
    assert done.returncode == status, done.stdout + done.stderr
    return json.loads(done.stdout) if status == 0 else done.stderr


async def drained(service: Service) -> None:
    """SIGTERM, and wait for its end."""
    os.kill(service.pid, signal.SIGTERM)
    assert await service.ended() == 0


async def test_a_moved_installation_goes_on_with_all_that_was_open_and_sends_it_once(
    postgres_url: str, tmp_path: Path, rng: random.Random
) -> None:
    """New, scheduled, waiting for a retry; keys, windows, dead tokens that nobody was told of: all is there."""
    async with running(tmp_path, workers=2) as service:
        async with called(service, rng, users=30, width=4) as load:
            await load.grown(40)
            await service.lab.script(DOWN)
            await load.grown(60)
            at = (datetime.now(UTC) + timedelta(seconds=LATER_S)).isoformat()
            scheduled = [load.compose(scheduled_at=at) for _ in range(20)]
        assert await command(service, "move", "--to", postgres_url, status=1)
        await load.submit_together(scheduled)
        await drained(service)
        moved = await command(service, "move", "--to", postgres_url)
        assert moved["rows"]["notification"] >= 120
        assert moved["rows"]["device"] == sum(len(tokens) for tokens in map(load.tokens_of, load.users))

        assert "was moved to PostgreSQL" in await command(service, "migrate", status=1)
        assert "was moved" in await command(service, "move", "--to", postgres_url, status=1)
        service.configure(workers=2, store={"url": postgres_url, "run_dir": str(tmp_path / "run")})
        await service.start()
        for entry in load.keyed(20):
            await load.repeat(entry)
        still_open = [each for each in (await listed(service)).values() if each["status"] not in ("sent", "unknown")]
        assert len(still_open) >= 20, "nothing was left to go on with"
        await service.lab.heal()
        result = await balance(service, load.ledger)
        assert result.duplicates == 0

        await the_registry_hears_of_a_dead_token(service)


async def the_registry_hears_of_a_dead_token(service: Service) -> None:
    """The reader of the journal goes on where new rows come in."""
    (token,) = (await service.lab.ask("POST", "/tokens", {"platform": "android"}))["tokens"]
    await service.ask("PUT", "/v1/devices/late/phone", {"platform": "android", "token": token})
    await service.lab.ask("POST", f"/tokens/{token}/kill", {})
    assert (await service.ask("POST", "/v1/notifications", {"user_id": "late", "title": "Hi"}))[0] == 202

    async def is_evicted() -> bool:
        return not (await service.ask("GET", "/v1/devices/late"))[1]["items"]

    await until(is_evicted, "the dead token's device is deactivated")


async def test_a_backup_while_it_serves_goes_on_with_what_was_open(tmp_path: Path, rng: random.Random) -> None:
    """What was sent since is sent again, but for what is at_most_once; nothing of the backup is lost."""
    async with running(tmp_path, workers=2) as service:
        async with called(service, rng, users=20, width=4) as load:
            await load.grown(30)
            await service.lab.script(DOWN)
            await load.grown(40)
            answered = set(load.ledger.entries)
            made = await command(service, "backup", str(tmp_path / "backup.db"))
            await load.grown(10)
        assert made["open"] >= 20
        assert "another waypost serves" in await command(service, "restore", str(tmp_path / "backup.db"), status=1)
        await service.lab.heal()
        await until(lambda: all_ended(service), "what was open is sent")
        await drained(service)
        restored = await command(service, "restore", str(tmp_path / "backup.db"), "--force")
        await service.start()
        after = await listed(service)
        assert answered <= after.keys() < load.ledger.entries.keys()
        await until(lambda: all_ended(service), "what was open has ended")
        copies = {id_: max(tokens.values()) for id_, tokens in (await service.lab.copies()).items()}
        once = {id_ for id_, entry in load.ledger.entries.items() if entry.at_most_once}
        assert 2 in copies.values(), "nothing was sent again"
        assert {copies[id_] for id_ in once & copies.keys()} <= {1}
        ended = [each for each in (await listed(service)).values() if each["status"] == "expired"]
        assert restored["expired"] >= len(ended) > 0


async def all_ended(service: Service) -> bool:
    """Whether nothing is open."""
    return all(each["finished_at"] for each in (await listed(service)).values())
