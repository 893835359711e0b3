"""gRPC as its callers meet it: a served Waypost, other people's clients, workers that die and drain."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import grpc
import pytest

from tests.journeys.go_caller import go_caller, go_command
from tests.journeys.harness import Service, running, until
from tests.journeys.load import Audience
from tests.shows import shows
from waypost.v1 import notifications_pb2 as pb
from waypost.v1.notifications_pb2_grpc import NotificationsStub

ROOT = Path(__file__).parents[2]
OPEN: dict[str, Any] = {"grpc": {"listen": "127.0.0.1:0"}}

pytestmark = pytest.mark.asyncio


async def sent(service: Service, ids: list[str]) -> None:
    """Return when each of *ids* reads `sent` and the lab has it."""
    for id_ in ids:
        assert id_

        async def is_sent(wanted: str = id_) -> bool:
            return await service.is_sent(wanted)

        await until(is_sent, f"{id_} sent")
        assert await service.lab.arrivals(id_)


async def ended(*command: str | Path, **environment: str) -> str:
    """What a program says that ends well."""
    program, *arguments = command
    run = await asyncio.create_subprocess_exec(
        program, *arguments, env=os.environ | environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    said, errors = await run.communicate()
    assert run.returncode == 0, errors.decode()
    return said.decode()


@shows("S1-04")
async def test_a_caller_in_go_sends_one_a_batch_and_a_stream(tmp_path: Path) -> None:
    """Its stub is generated from our proto file; it reads our codes and the wrong field from a refusal."""
    go = go_command()
    if go is None:
        if os.environ.get("CI") == "true":
            pytest.fail("go is not installed")
        pytest.skip("go is not installed")
    program = await asyncio.to_thread(go_caller, go)
    async with running(tmp_path, workers=2, **OPEN) as service:
        audience = Audience(service)
        await audience.register(5)
        said = json.loads(await ended(program, service.grpc, WAYPOST_API_KEY=service.key))
        assert said["repeated"] == said["unary"]
        assert (said["code"], said["reason"], said["field"]) == ("InvalidArgument", "invalid_request", "ttl")
        assert said["found_user"] == "user-0"
        assert sorted(map(int, said["stream"])) == list(range(20))
        ids = [said["unary"], *said["batch"], *said["stream"].values()]
        assert len(set(ids)) == 26
        await sent(service, ids)


async def test_the_example_of_the_page_runs_and_nobody_else_gets_its_port(tmp_path: Path) -> None:
    """As a newcomer would copy it. Two services that share a port by mistake would each get some of the calls."""
    page = (ROOT / "docs" / "grpc.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    async with running(tmp_path, workers=1, **OPEN) as service:
        await Audience(service).register(2)
        said = await ended(sys.executable, "-c", example, WAYPOST_GRPC=service.grpc, WAYPOST_API_KEY=service.key)
        ids = [line.split()[-1] for line in said.splitlines() if line.startswith("accepted")]
        assert len(ids) == 4, said
        await sent(service, ids)
        other = service.beside("other", workers=1, grpc={"listen": service.grpc})
        with pytest.raises(AssertionError, match=r"grpc\.listen: cannot listen"):
            await other.start()


class Stubborn:
    """A caller that streams *count* items with keys, and again those without an acknowledgement, until none is left."""

    def __init__(self, service: Service, count: int) -> None:
        self.ids: dict[int, str] = {}
        self.streams = 0
        self.begun = asyncio.Event()
        self._service = service
        self._count = count

    async def run(self) -> None:
        """Until everything is acknowledged."""
        while len(self.ids) < self._count:
            async with grpc.aio.insecure_channel(self._service.grpc) as channel:
                with contextlib.suppress(grpc.aio.AioRpcError):
                    await self._stream(NotificationsStub(channel))

    async def _stream(self, stub: Any) -> None:
        self.streams += 1
        stream = stub.SubmitStream(metadata=[("authorization", f"Bearer {self._service.key}")])
        open_items = [n for n in range(self._count) if n not in self.ids]
        for place in range(0, len(open_items), 20):
            await stream.write(pb.SubmitStreamRequest(items=[_item(n) for n in open_items[place : place + 20]]))
            self._hear(await stream.read())
            self.begun.set()
        await stream.done_writing()
        while (message := await stream.read()) is not grpc.aio.EOF:
            self._hear(message)

    def _hear(self, message: Any) -> None:
        for each in message.acknowledgements if message is not grpc.aio.EOF else ():
            if each.HasField("notification"):
                assert self.ids.setdefault(each.sequence, each.notification.id) == each.notification.id


def _item(n: int) -> pb.StreamItem:
    wanted = pb.Submission(user_id=f"user-{n % 5}", title=f"item {n}", idempotency_key=f"item-{n}")
    return pb.StreamItem(sequence=n, notification=wanted)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
async def test_a_stream_goes_on_at_another_worker(how: signal.Signals, tmp_path: Path) -> None:
    """Killed or told to stop: what has no acknowledgement is said again, and each is one notification."""
    async with running(tmp_path, workers=2, **OPEN) as service:
        await Audience(service).register(5)
        caller = Stubborn(service, 300)
        calling = asyncio.create_task(caller.run())
        await caller.begun.wait()
        for pid in service.worker_pids():
            os.kill(pid, how)
        await calling
        assert caller.streams >= 2
        assert len(set(caller.ids.values())) == 300
        status, page = await service.ask("GET", "/v1/notifications?limit=200")
        assert (status, len(page["items"])) == (200, 200)
        assert not service.log("request.failed")


async def test_a_stream_that_waits_is_told_of_the_shutdown(tmp_path: Path) -> None:
    """It reads as the worker stops: a client of gRPC that writes then hears of its write alone."""
    async with running(tmp_path, workers=1, **OPEN) as service, grpc.aio.insecure_channel(service.grpc) as channel:
        await Audience(service).register(5)
        stream = NotificationsStub(channel).SubmitStream(metadata=[("authorization", f"Bearer {service.key}")])
        await stream.write(pb.SubmitStreamRequest(items=[_item(0)]))
        assert [each.sequence for each in (await stream.read()).acknowledgements] == [0]
        for pid in service.worker_pids():
            os.kill(pid, signal.SIGTERM)
        with pytest.raises(grpc.aio.AioRpcError) as raised:
            await stream.read()
        assert raised.value.code() is grpc.StatusCode.UNAVAILABLE
        assert "shutting down" in str(raised.value.details())
