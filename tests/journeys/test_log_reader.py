"""Whoever was to read the log has stopped: ``waypost serve 2>&1 | less``."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from tests.journeys.harness import Service, running, until
from tests.journeys.load import Audience


@pytest.mark.asyncio
async def test_a_log_that_nobody_reads_holds_up_nothing(tmp_path: Path) -> None:
    """Each delivery says a line into a full pipe: all are sent, what was said comes later, and SIGTERM ends it in
    spite of a pipe that is full again."""
    async with running(tmp_path, workers=2, start=False, log={"level": "debug"}) as service:
        os.mkfifo(tmp_path / "serve.log")
        reader = os.open(tmp_path / "serve.log", os.O_RDONLY | os.O_NONBLOCK)
        await service.start()
        _fill(tmp_path / "serve.log")
        first = await _sent(service, "before")
        said: list[bytes] = []
        await until(lambda: _all_said(reader, said, first), "what was said while nobody read")
        _fill(tmp_path / "serve.log")
        await _sent(service, "after")
        os.kill(service.pid, signal.SIGTERM)
        assert await service.ended() == 0
        os.close(reader)


async def _sent(service: Service, name: str) -> list[str]:
    """Notifications to users of many shards, so that each worker has some, once a provider took them."""
    await Audience(service).register(20, (("ios",),), name)
    made = []
    for n in range(20):
        status, answer = await service.ask("POST", "/v1/notifications", {"user_id": f"{name}-{n}", "title": "t"})
        assert status == 202
        made.append(answer["id"])
    for each in made:
        await until(_of(service, each), f"the end of {each}")
    return made


def _of(service: Service, notification_id: str) -> Callable[[], Awaitable[bool]]:
    return lambda: service.is_sent(notification_id)


async def _all_said(reader: int, said: list[bytes], ids: list[str]) -> bool:
    """Read what is there, and say whether there is a line for each of *ids*."""
    try:
        said.append(os.read(reader, 1 << 20))
    except BlockingIOError:
        await asyncio.sleep(0)
    whole = [line for line in b"".join(said).lstrip(b"-").splitlines(keepends=True) if line.endswith(b"}\n")]
    events = [json.loads(line[line.index(b"{") :]) for line in whole]
    return set(ids) <= {each.get("notification_id") for each in events}


def _fill(pipe: Path) -> None:
    """Write until nothing more goes in; the pipe is opened anew, so that only we are refused instead of made wait."""
    writer = os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
    try:
        while True:
            os.write(writer, b"-" * 4096)
    except BlockingIOError:
        os.close(writer)
