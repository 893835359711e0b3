"""More is submitted than the machine can store: callers are told to come later, and deliveries go on meanwhile."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest

from tests.journeys.harness import Json, Service, running, until
from waypost.bench.registry import iphones, register
from waypost.bench.stores import connected

pytestmark = pytest.mark.asyncio

USERS = 200
CALLERS = 16
BATCH = 100
LOOKS = 2
"""How often deliveries are seen to have gone on."""
REFUSALS = 4
"""Between two looks."""
RETRY_PAUSE_S = 0.1


@dataclass
class _Callers:
    """Callers who submit one batch after the other, again and again where it is refused."""

    service: Service
    accepted: set[str] = field(default_factory=set)
    refusals: list[Json] = field(default_factory=list)
    is_over: bool = False

    async def run(self) -> None:
        """Let all of them submit until it is over."""
        await asyncio.gather(*(self._caller(n) for n in range(CALLERS)))

    async def were_refused(self, times: int) -> bool:
        """Whether they were, so often."""
        return len(self.refusals) >= times

    async def _caller(self, caller: int) -> None:
        turn = 0
        while not self.is_over:
            turn += 1
            items = [_notification(f"{caller}-{turn}-{n}", n) for n in range(BATCH)]
            codes: set[str] = set()
            while code := await self._refusal_of(items):
                codes.add(code)
                if self._may_stop(codes):
                    break

    def _may_stop(self, codes: set[str]) -> bool:
        """Whether a batch that was refused with *codes* need not be asked for again: nothing of it is in doubt."""
        return self.is_over and "storage_away" not in codes

    async def _refusal_of(self, items: list[Json]) -> str | None:
        """Submit once; the code, where it was not accepted: `storage_away` is in doubt, and a repeat finds out."""
        status, answer = await self.service.ask("POST", "/v1/notifications/batch", {"notifications": items}, once=True)
        if status == 503:
            assert answer["code"] in {"storage_busy", "storage_away"}
            assert 1 <= answer["retry_after"] <= 4
            self.refusals.append(answer)
            await asyncio.sleep(RETRY_PAUSE_S)  # much shorter than it was told
            return str(answer["code"])
        assert status in (200, 202), answer
        assert not answer["refused"], answer
        self.accepted |= {each["notification"]["id"] for each in answer["results"]}
        return None


async def test_overload_is_shed_at_the_door_and_deliveries_go_on(tmp_path: Path) -> None:
    """By two workers on SQLite; all that was accepted is sent once."""
    store = {"url": f"sqlite:///{tmp_path}/waypost.db", "lock_timeout_s": 0.1}
    async with running(tmp_path, workers=2, store=store) as service:
        with connected(f"sqlite:///{service.store_path}") as connection:
            register(connection, iphones(USERS))
        callers = _Callers(service)
        async with asyncio.TaskGroup() as calling:
            calling.create_task(callers.run())
            for _ in range(LOOKS):
                refused, sent = len(callers.refusals), await _sent(service)
                await until(partial(callers.were_refused, refused + REFUSALS), "callers are refused")
                await until(partial(_is_sent, service, sent + 1), "deliveries go on")
            callers.is_over = True
        await until(partial(_is_sent, service, len(callers.accepted)), "all that was accepted is sent")
        copies = await service.lab.copies()
        assert set(copies) == callers.accepted
        assert {n for tokens in copies.values() for n in tokens.values()} == {1}
        metrics = await _metrics(service)
        assert "waypost_shed_total{" in metrics


async def _is_sent(service: Service, count: int) -> bool:
    return await _sent(service) >= count


async def _sent(service: Service) -> int:
    sent: int = (await service.lab.ask("GET", "/counts"))["apns"]["accepted"]
    return sent


async def _metrics(service: Service) -> str:
    async with service._session.get(service.url + "/metrics") as answer:
        return await answer.text()


def _notification(mark: str, n: int) -> Json:
    body = f"Number {mark} was left at the front door."
    return {"user_id": f"vip-{n % USERS}", "title": "Your parcel is here", "body": body, "dedup_window": 3_600}
