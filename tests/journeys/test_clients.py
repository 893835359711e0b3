"""The Python clients against a Waypost that is killed under them."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.journeys.harness import running, until
from waypost.client import AsyncClient, Client

EACH = 100


@pytest.mark.asyncio
async def test_what_clients_send_while_waypost_is_killed_is_accepted_once(tmp_path: Path) -> None:
    """Without keys of the caller's own, over kept connections that break before or after what they carried was done."""
    answered: list[str] = []
    async with running(tmp_path, workers=1) as service:
        with Client(service.url, service.key, retry_s=60) as blocking:
            async with AsyncClient(service.url, service.key, retry_s=60) as asynchronous:

                async def by_thread(n: int) -> None:
                    for _ in range(EACH):
                        told = await asyncio.to_thread(blocking.send, {"user_id": f"u{n}", "title": "Hi"})
                        answered.append(told["id"])

                async def by_task(n: int) -> None:
                    for _ in range(EACH):
                        told = await asynchronous.send({"user_id": f"u{n}", "title": "Hi"})
                        answered.append(told["id"])

                async with asyncio.TaskGroup() as callers:
                    for n in range(4):
                        callers.create_task((by_thread if n % 2 else by_task)(n))
                    for share in (1, 2, 3):

                        async def far_enough(count: int = share * EACH) -> bool:
                            return len(answered) >= count

                        await until(far_enough, f"{share * EACH} answers")
                        await service.kill(service.pid)
                        await service.start()
                kept = [each["id"] async for each in asynchronous.each(asynchronous.history, limit=100)]
        assert len(set(answered)) == len(answered) == 4 * EACH
        assert sorted(kept) == sorted(answered)
