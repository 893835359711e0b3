"""Bulk sends by real processes: every recipient in exactly one state, whoever dies meanwhile."""

from __future__ import annotations

import asyncio
import json
import random
import subprocess
import sys
from pathlib import Path

import pytest

from tests.journeys.balance import balance, listed
from tests.journeys.harness import Json, Service, running, until
from tests.journeys.load import Audience, Ledger, Load
from tests.shows import shows
from tests.tables import AddRow

USERS = 300
RATE = 150
"""Slow enough that there is a middle to be killed in."""
SLOW_RATE = 30
"""Ten seconds from beginning to end, so that an order comes in time from a slow machine, too."""
MESSAGE = {"title": "Season {{season}}", "body": "It begins today."}


async def _submit(service: Service, **fields: object) -> Json:
    status, job = await service.ask("POST", "/v1/bulk", {"notification": MESSAGE} | fields)
    assert status == 202, job
    return job


async def _job(service: Service, job_id: str) -> Json:
    status, job = await service.ask("GET", f"/v1/bulk/{job_id}")
    assert status == 200, job
    return job


async def _settled(service: Service, job_id: str, least: int) -> Json:
    async def far_enough() -> Json | None:
        job = await _job(service, job_id)
        sent: int = job["counts"].get("sent", 0)
        return job if sent >= least else None

    found: Json = await until(far_enough, f"{least} recipients are sent to")
    return found


async def _finished(service: Service, job_id: str) -> Json:
    async def over() -> Json | None:
        job = await _job(service, job_id)
        return job if job["state"] == "finished" else None

    found: Json = await until(over, "the job is finished")
    return found


async def _ledger(service: Service, job_id: str, audience: Audience) -> Ledger:
    """What the job promised: one notification for each user, on each of their devices."""
    ledger = Ledger()
    for user, tokens in audience.tokens.items():
        status, found = await service.ask("GET", f"/v1/bulk/{job_id}/recipients/{user}")
        assert status == 200, found
        ledger.note({"id": found["notification_id"]}, {}, tokens)
    assert len(ledger.entries) == len(audience.tokens), "one id for each user"
    return ledger


@shows("S2-06")
@pytest.mark.timeout(600)
@pytest.mark.parametrize("source", ["registry", "list"])
@pytest.mark.asyncio
async def test_kill_9_in_the_middle_loses_nobody_and_tells_nobody_twice(
    source: str, tmp_path: Path, rng: random.Random, table: AddRow
) -> None:
    """Workers and the supervisor die; each recipient ends sent, and a second copy follows a kill."""
    async with running(tmp_path, workers=2) as service:
        audience = Audience(service)
        await audience.register(USERS)
        recipients: Json = {"recipients": sorted(audience.tokens)} if source == "list" else {"registry": {}}
        job = await _submit(service, rate=RATE, variables={"season": "7"}, **recipients)
        kills = []
        for n, least in enumerate((USERS // 6, USERS // 3, USERS // 2)):
            await _settled(service, job["id"], least)
            victim = service.pid if n == 1 else rng.choice(service.worker_pids())
            kills.append(await service.kill(victim))
            if n == 1:
                await service.start()
        job = await _finished(service, job["id"])
        assert (job["enqueued"], job["counts"]) == (USERS, {"sent": USERS})
        result = await balance(service, await _ledger(service, job["id"], audience), kills=kills)
        table("bulk under kill -9", source=source, kills=len(kills), **result.row())


@pytest.mark.asyncio
async def test_a_job_is_paused_resumed_and_cancelled(tmp_path: Path) -> None:
    async with running(tmp_path, workers=2) as service:
        audience = Audience(service)
        await audience.register(USERS, platforms=(("ios",),))
        job = await _submit(service, registry={}, rate=SLOW_RATE, variables={"season": "7"})
        await _settled(service, job["id"], 20)
        status, paused = await service.ask("POST", f"/v1/bulk/{job['id']}/pause")
        assert (status, paused["state"]) == (200, "paused")
        resting = await _at_rest(service, job["id"])
        assert resting["enqueued"] < USERS
        await service.ask("POST", f"/v1/bulk/{job['id']}/resume")
        await _settled(service, job["id"], resting["counts"]["sent"] + 10)
        status, cancelled = await service.ask("POST", f"/v1/bulk/{job['id']}/cancel")
        assert (status, cancelled["state"]) == (200, "cancelled")
        ended = await _over(service, job["id"])
        assert 0 < ended["counts"]["sent"] < USERS
        status, answer = await service.ask("POST", f"/v1/bulk/{job['id']}/resume")
        assert (status, answer["code"]) == (409, "wrong_state")


async def _over(service: Service, job_id: str) -> Json:
    """The cancelled job once everybody enqueued is cancelled, or was sent to and has a record that says so.

    Who is on the way when the order comes counts as cancelled until the answer is there.
    """

    async def all_ended() -> Json | None:
        job, details = await _job(service, job_id), await listed(service)
        counts = job["counts"]
        sent = {id_ for id_, detail in details.items() if detail["status"] == "sent"}
        adds_up = len(sent) == counts["sent"] == job["enqueued"] - counts.get("cancelled", 0)
        return job if adds_up and set(await service.lab.copies()) == sent else None

    found: Json = await until(all_ended, "each was sent to and has a record, or is cancelled")
    return found


async def _at_rest(service: Service, job_id: str) -> Json:
    """The job once nothing of it is on its way."""

    async def nothing_held() -> Json | None:
        before = await _job(service, job_id)
        status, ready = await service.ask("GET", "/health/ready")
        assert status == 200, ready
        after = await _job(service, job_id)
        on_its_way = await service.lab.copies()
        return after if before["counts"] == after["counts"] and len(on_its_way) == after["counts"]["sent"] else None

    found: Json = await until(nothing_held, "nothing of the job is on its way")
    return found


@pytest.mark.asyncio
async def test_the_command_line_sends_a_list_and_waits(tmp_path: Path) -> None:
    """CSV with variables, one user twice, one without a device."""
    async with running(tmp_path) as service:
        audience = Audience(service)
        await audience.register(4, platforms=(("android",),))
        users = sorted(audience.tokens)
        people = tmp_path / "people.csv"
        people.write_text("user_id,season\n" + "".join(f"{user},{n}\n" for n, user in enumerate(users)))
        with people.open("a") as file:
            file.write(f"{users[0]},9\nnobody,\n")
        command = [sys.executable, "-m", "waypost.cli", "bulk", "send", "--url", service.url, "--json", "--wait"]
        command += ["--title", "Season {{season}}", "--variable", "season=1", "--list", str(people)]
        environment = {"WAYPOST_API_KEY": service.key, "PATH": ""}
        made = await asyncio.to_thread(
            subprocess.run, command, env=environment, check=True, capture_output=True, text=True
        )
        job = json.loads(made.stdout)
        assert (job["state"], job["counts"]) == ("finished", {"no_targets": 1, "sent": 4})
        status, found = await service.ask("GET", f"/v1/bulk/{job['id']}/recipients/{users[0]}")
        assert (status, found["status"]) == (200, "sent"), found
        status, detail = await service.ask("GET", f"/v1/notifications/{found['notification_id']}")
        assert detail["content"]["title"] == "Season 9", "the last mention counts"


@pytest.mark.asyncio
async def test_what_is_urgent_does_not_wait_for_a_bulk_job(tmp_path: Path, rng: random.Random) -> None:
    """Every gateway answers bulk pushes late, so that the job fills its lane; another lane goes on."""
    async with running(tmp_path) as service:
        audience = Audience(service)
        await audience.register(200, platforms=(("ios",),))
        await _submit(service, registry={}, variables={"season": "7"})
        load = Load(service, audience, rng, scheduled_at=None)
        await load.run(4, limit=60)

        async def all_sent() -> bool:
            details = await listed(service)
            return all(details.get(id_, {"status": "pending"})["status"] == "sent" for id_ in load.ledger.entries)

        await until(all_sent, "everything urgent is sent")
