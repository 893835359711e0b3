"""The product and its lab as real processes: started, asked, stopped, frozen and killed, and ended on every path."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import yaml

from tests.empty_store import put_empty
from tests.journeys.lab import Lab
from tests.journeys.processes import environment_of_a_service, killed, parent_of, started, state_of
from waypost.bootstrap.registry import load
from waypost.cli.keys import make_key

DEADLINE_S = 150.0
"""For whatever must come by itself: generous, because machines stand still at times."""
POLL_S = 0.05
PROMPT_RETRIES = {"max_retries": 200, "base_ms": 100, "cap_ms": 1000, "jitter": "full"}
"""A policy that never gives up within a test and never makes one wait."""

Json = dict[str, Any]


async def until(condition: Callable[[], Awaitable[Any]], what: str, deadline_s: float = DEADLINE_S) -> Any:
    """Poll *condition* until it gives something true, and give that; TimeoutError says *what* never came.

    A connection that a dying process took with it is no answer yet, nor is half an answer.
    """
    ends_s = time.monotonic() + deadline_s
    while True:
        with contextlib.suppress(aiohttp.ClientConnectionError, aiohttp.ClientPayloadError):
            if found := await condition():
                return found
        if time.monotonic() > ends_s:
            raise TimeoutError(f"after {deadline_s:.0f} s still not: {what}")
        await asyncio.sleep(POLL_S)  # processes are asked from outside, by polls


@dataclass(frozen=True)
class Kill:
    """When a process died, in wall time; what it had sent until then had arrived *after*."""

    before: float
    after: float


class Service:
    """``waypost serve`` and its workers."""

    def __init__(self, directory: Path, lab: Lab, session: aiohttp.ClientSession) -> None:
        self.directory = directory
        self.lab = lab
        self.config_path = directory / "waypost.yaml"
        self.store_path = directory / "waypost.db"
        self.url = ""
        self.grpc = ""
        """Where gRPC answers, if it does: host and port."""
        self.key = ""
        self.process: subprocess.Popen[str] | None = None
        self.python = sys.executable
        """The interpreter, and with it the version of Waypost."""
        self.python_path: Path | None = None
        self.prefix: list[str] = []
        """What its command begins with, to run it somewhere else."""
        self._session = session

    def configure(self, **settings: Any) -> None:
        """Write ``waypost.yaml`` for the lab; *settings* replace or add whole top-level keys."""
        made, urls = str(self.lab.directory), self.lab.urls
        ca = {"ca_file": f"{made}/ca.pem"}
        app = {
            "apns": {
                "key_file": f"{made}/AuthKey.p8",
                "key_id": "ABCDE12345",
                "team_id": "FGHIJ67890",
                "topic": "com.example.demo",
                "endpoint": urls["apns"],
                **ca,
            },
            "fcm": {"service_account_file": f"{made}/fcm.json", "endpoint": urls["fcm"], **ca},
            "webpush": {
                "vapid_private_key_file": f"{made}/vapid.pem",
                "subject": "mailto:ops@example.com",
                "allow_endpoints": [urls["webpush"]],
                **ca,
            },
            "retry": {"default": PROMPT_RETRIES},
            **settings.pop("app", {}),
        }
        tree = {"store": f"sqlite:///{self.store_path}", "listen": "127.0.0.1:0", "apps": {"demo": app}} | settings
        self.config_path.write_text(yaml.safe_dump(tree))

    def beside(self, name: str, **settings: Any) -> Service:
        """Another service for the same lab and callers, with a folder and *settings* of its own; end it, too."""
        folder = self.directory / name
        folder.mkdir()
        other = Service(folder, self.lab, self._session)
        other.key = self.key
        other.python_path = self.python_path
        other.configure(**settings)
        return other

    async def start(self) -> None:
        """Start it and wait until every worker is ready; the second time on the same port."""
        listen = self.url.removeprefix("http://") or "127.0.0.1:0"
        program = [*self.prefix, self.python, "-m", "waypost.cli"]
        command = [*program, "serve", "--json", "--config", str(self.config_path)]
        killed(self.process)
        log = self.directory / "serve.log"
        self.process, ready = await started([*command, "--listen", listen], log, self.python_path)
        self.url = ready["url"]
        self.grpc = ready.get("grpc") or ""

    async def make_key(self) -> None:
        """Create the API key that the calls use; of this version, without a process of its own."""
        store = yaml.safe_load(self.config_path.read_text())["store"]
        apart = self.directory / "key.yaml"
        apart.write_text(yaml.safe_dump({"store": store, "apps": {"demo": {}}}))
        if self.python == sys.executable:
            if store == f"sqlite:///{self.store_path}":
                put_empty(self.store_path)
            self.key, _ = await make_key(load(apart, {}), "demo", "tests")
            return
        command = [self.python, "-m", "waypost.cli", "keys", "create", "--app", "demo", "--caller", "tests"]
        said = [*command, "--config", str(apart)]
        made = await asyncio.to_thread(
            subprocess.run, said, env=environment_of_a_service(None), stdout=subprocess.PIPE, text=True, check=True
        )
        self.key = made.stdout.strip()

    @property
    def pid(self) -> int:
        """Of the supervisor; of the only worker where there is one."""
        assert self.process is not None
        return self.process.pid

    def worker_pids(self) -> list[int]:
        """The processes that do the work, by age."""
        children = [pid for pid in self._processes() if parent_of(pid) == self.pid]
        return sorted(children) or [self.pid]

    async def kill(self, pid: int) -> Kill:
        """``kill -9``, and wait until it is gone and the lab has read what it had sent.

        Workers outlive their supervisor until their loop sees its pipe closed, and send until then; frozen ones stay.
        """
        ending = [pid, *(self.worker_pids() if pid == self.pid else ())]
        before = time.time()
        os.kill(pid, signal.SIGKILL)

        async def gone() -> bool:
            return state_of(pid) in "XZ" and all(state_of(each) in "TXZ" for each in ending)

        await until(gone, f"the end of process {pid} and its workers")
        await self.lab.ask("GET", "/")  # the lab answers in the order of what reached it
        return Kill(before, time.time())

    async def ended(self, deadline_s: float = DEADLINE_S) -> int:
        """Wait for the end of the main process; its exit status."""
        assert self.process is not None
        status = await asyncio.to_thread(self.process.wait, deadline_s)
        killed(self.process)
        return status

    def end(self) -> None:
        """Kill all of it: also workers that are frozen or lost their supervisor."""
        killed(self.process)
        for pid in self._processes():
            os.kill(pid, signal.SIGKILL)

    def log(self, *events: str) -> list[Json]:
        """What it logged so far under these names."""
        lines = (self.directory / "serve.log").read_text().splitlines()
        records = [json.loads(line) for line in lines if line.startswith("{")]
        return [record for record in records if not events or record.get("event") in events]

    async def ask(
        self, method: str, path: str, body: Any = None, *, anew: bool = False, once: bool = False
    ) -> tuple[int, Json]:
        """One call of the API, over a kept connection or *anew*: status and body.

        Unless it is said *once*, it is said again where the store is busy, as callers are asked to: a slow disk may
        hold up any write for longer than it may wait, and nothing is kept then.
        """
        ends_s = time.monotonic() + DEADLINE_S
        while True:
            status, said = await self._asked(method, path, body, anew)
            if once or (status, said.get("code")) != (503, "storage_busy") or time.monotonic() > ends_s:
                return status, said
            await asyncio.sleep(POLL_S)  # much shorter than it was told

    async def _asked(self, method: str, path: str, body: Any, anew: bool) -> tuple[int, Json]:
        request = aiohttp.request if anew else self._session.request
        headers = {"authorization": f"Bearer {self.key}"}
        async with request(method, self.url + path, json=body, headers=headers) as answer:
            text = await answer.text()
            return answer.status, json.loads(text) if text else {}

    async def upload(self, path: str, lines: bytes, method: str = "PUT") -> tuple[int, Json]:
        """Send a list, a JSON object a line: status and body."""
        headers = {"authorization": f"Bearer {self.key}", "content-type": "application/x-ndjson"}
        async with self._session.request(method, self.url + path, data=io.BytesIO(lines), headers=headers) as answer:
            return answer.status, json.loads(await answer.text())

    async def is_sent(self, notification_id: str) -> bool:
        """Whether it reads `sent`."""
        status, answer = await self.ask("GET", f"/v1/notifications/{notification_id}")
        return status == 200 and answer["notification"]["status"] == "sent"

    def _processes(self) -> list[int]:
        """Everything that was started with our configuration file, whoever started it."""
        mark, found = str(self.config_path).encode(), []
        for entry in Path("/proc").iterdir():
            try:
                if entry.name.isdigit() and mark in (entry / "cmdline").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
            except OSError:
                continue  # it ended while we looked
        return found


@contextlib.asynccontextmanager
async def running(
    directory: Path,
    *,
    sitecustomize: str = "",
    in_lab: bool = False,
    start: bool = True,
    python: str = sys.executable,
    lab_options: tuple[str, ...] = (),
    **settings: Any,
) -> AsyncIterator[Service]:
    """A lab and a service that is ready, with a key; every process is ended with the block.

    Without *start* the service is left to be configured and started. *sitecustomize* is what Python runs as each
    interpreter of the service starts (and *in_lab* the lab's): the product knows nothing of it. *python* may have
    another version of it.
    """
    timeout = aiohttp.ClientTimeout(total=30)
    async with aiohttp.ClientSession(timeout=timeout, connector=aiohttp.TCPConnector(limit=0)) as session:
        lab = Lab(directory / "lab", session)
        service = Service(directory, lab, session)
        service.python = python
        lab.options = lab_options
        if sitecustomize:
            service.python_path = directory / "hook"
            service.python_path.mkdir()
            (service.python_path / "sitecustomize.py").write_text(sitecustomize)
            lab.python_path = service.python_path if in_lab else None
        try:
            await lab.start()
            service.configure(**settings)
            await service.make_key()
            if start:
                await service.start()
            yield service
        finally:
            service.end()
            lab.end()
