"""The drill of a restore: under load a store is copied, lost and put back; each notification is accounted for."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import aiohttp
import pytest

from tests.journeys.harness import Service, running, until
from tests.journeys.test_drills import USERS, register, runbook
from tests.tables import AddRow

pytestmark = [pytest.mark.asyncio, pytest.mark.long]  # `make drill ONLY=restore` runs it

BATCH = 20
TABLE = "A restore under load"
GUARANTEES = ("at_least_once", "at_most_once")


class Callers:
    """Callers who go on whatever happens, and repeat with their keys what was not answered."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._numbers = iter(range(1_000_000))
        self._going = True
        self.ids: dict[str, list[str]] = {}
        """The ids that each key was answered with, in order."""
        self.asked: dict[str, dict[str, Any]] = {}
        """What was asked under each key."""

    async def go_on(self) -> None:
        """Submit batches, some of which are to be sent in three seconds."""
        while self._going:
            await self.submit([self._one(n) for n in (next(self._numbers) for _ in range(BATCH))])

    def stop(self) -> None:
        """Let them end with the batch under way."""
        self._going = False

    async def submit(self, items: Sequence[dict[str, Any]]) -> list[str]:
        """Submit until it is answered."""
        while True:
            try:
                status, said = await self._service.ask("POST", "/v1/notifications/batch", {"notifications": [*items]})
            except aiohttp.ClientError:
                status, said = 503, {}
            if status < 300:
                break
            await asyncio.sleep(0.05)  # the pace of callers, not a wait for something
        ids = [each["notification"]["id"] for each in said["results"]]
        for item, one in zip(items, ids, strict=True):
            key = item["idempotency_key"]
            self.asked[key] = item
            if one not in self.ids.setdefault(key, []):
                self.ids[key].append(one)
        return ids

    def _one(self, n: int) -> dict[str, Any]:
        later = {"scheduled_at": in_seconds(3)} if n % 4 > 1 else {}
        said = {"user_id": f"u{n % USERS}", "title": f"number {n}", "guarantee": GUARANTEES[n % 2]}
        return said | later | {"idempotency_key": f"key-{n}"}


def in_seconds(seconds: float) -> str:
    return (datetime.now(UTC) + timedelta(seconds=seconds)).isoformat().replace("+00:00", "Z")


def states_in(file: Path) -> dict[str, tuple[str, bool]]:
    """What each notification is in a copy: its guarantee, and whether it is finished."""
    with closing(sqlite3.connect(file)) as copy:
        rows = copy.execute("SELECT id, guarantee, finished_at IS NOT NULL FROM notification").fetchall()
    return {str(UUID(bytes=row[0])): (row[1], bool(row[2])) for row in rows}


async def sent(service: Service) -> Counter[str]:
    """How often the provider took each notification."""
    copies = await service.lab.copies()
    return Counter({one: sum(by_token.values()) for one, by_token in copies.items()})


async def all_over(service: Service, but: int) -> None:
    """Wait until all is final *but* so many, which are scheduled for much later."""

    async def is_over() -> bool:
        with closing(sqlite3.connect(service.store_path)) as store:
            ((left,),) = store.execute("SELECT count(*) FROM notification WHERE finished_at IS NULL").fetchall()
        return bool(left == but)

    await until(is_over, "the end of what is open", 90)


async def test_restore(tmp_path: Path, table: AddRow) -> None:
    """docs/backup.md says what is sent again and what is not; here the provider's count says the same of each one."""
    file = tmp_path / "backup.db"
    async with running(tmp_path, workers=2) as service:
        await register(service)
        callers = Callers(service)
        far = [
            {"user_id": "u1", "title": f"far {word}", "guarantee": word, "scheduled_at": in_seconds(3_600)}
            | {"idempotency_key": f"far-{word}"}
            for word in GUARANTEES
        ]
        far_ids = await callers.submit(far)
        load = asyncio.create_task(callers.go_on())

        async def is_under_load(more: int = 400) -> bool:
            return sum((await sent(service)).values()) >= more

        await until(is_under_load, "load")
        await runbook(service, "backup", str(file), "--config", str(service.config_path))
        had = states_in(file)
        before_loss = sum((await sent(service)).values())
        await until(lambda: is_under_load(before_loss + 800), "load after the backup")
        os.kill(service.pid, signal.SIGTERM)
        assert await service.ended() == 0
        at_loss = await sent(service)
        known = {one for ids in callers.ids.values() for one in ids}
        lost = [key for key, ids in callers.ids.items() if ids[0] not in had]
        await runbook(service, "restore", "--force", str(file), "--config", str(service.config_path))
        await service.start()
        for at in range(0, len(lost), BATCH):
            await callers.submit([without_time(callers.asked[key]) for key in lost[at : at + BATCH]])
        callers.stop()
        await load
        await all_over(service, len(far))
        after = await sent(service)

        found: Counter[str] = Counter()
        for one in sorted(known | set(had)):
            again = after[one] - at_loss[one]
            if one in far_ids:
                assert (at_loss[one], again) == (0, 0), "it waits for its time"
                kind = "scheduled for later than the restore: waits on"
            elif one not in had:
                assert again == 0
                assert (await service.ask("GET", f"/v1/notifications/{one}"))[0] == 404
                kind = "accepted after the backup: unknown, not sent again"
            else:
                guarantee, finished = had[one]
                expected = 0 if finished or guarantee == "at_most_once" else 1
                assert again == expected, (one, had[one], at_loss[one], again)
                kind = "finished in the backup" if finished else f"open in the backup, {guarantee}"
            found[f"{kind}, sent {at_loss[one]}+{again}"] += 1
        repeated = Counter(len(callers.ids[key]) for key in lost)
        assert set(repeated) == {2}, "a key that was used since is new again"
        assert all(after[callers.ids[key][1]] == 1 for key in lost)
        kinds = " | ".join(found)
        for needed in (
            "finished in",
            "open in the backup, at_least_once, sent 1+1",
            "at_most_once, sent 1+0",
            "unknown",
        ):
            assert needed in kinds, f"the drill had none: {needed}"
        for kind, n in sorted(found.items()):
            table(TABLE, what=kind, notifications=n)
        table(TABLE, what="repeated by their callers with their keys: sent again", notifications=len(lost))


def without_time(item: dict[str, Any]) -> dict[str, Any]:
    """The same request again, whose time is over by now."""
    return {name: value for name, value in item.items() if name != "scheduled_at"}
