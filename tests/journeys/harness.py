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
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import yaml

from waypost.bootstrap.registry import load
from waypost.cli.keys import make_key

DEADLINE_S = 150.0
"""For whatever must come by itself: generous, because machines stand still at times."""
START_S = 240.0
"""For a process to be ready: most of it is the interpreter's own work, which a busy machine takes its time for."""
POLL_S = 0.05
PROMPT_RETRIES = {"max_retries": 200, "base_ms": 100, "cap_ms": 1000, "jitter": "full"}
"""A policy that never gives up within a test and never makes one wait."""

Json = dict[str, Any]


async def until(condition: Callable[[], Awaitable[Any]], what: str, deadline_s: float = DEADLINE_S) -> Any:
    """Poll *condition* until it gives something true, and give that; TimeoutError says *what* never came.

    A connection that a dying process took with it is no answer yet.
    """
    ends_s = time.monotonic() + deadline_s
    while True:
        with contextlib.suppress(aiohttp.ClientConnectionError):
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


class Lab:
    """A provider lab in a process of its own."""

    def __init__(self, directory: Path, session: aiohttp.ClientSession) -> None:
        self.directory = directory
        self.urls: dict[str, str] = {}
        self.python_path: Path | None = None
        self.options: tuple[str, ...] = ()
        """More of its command line."""
        self._session = session
        self._process: subprocess.Popen[str] | None = None

    async def start(self) -> None:
        """Start it, on the ports that it had before if it ran before."""
        command = [sys.executable, "-m", "waypost.lab", "--json", "--directory", str(self.directory), *self.options]
        for name in ("apns", "fcm", "webpush", "oauth", "admin"):
            port = self.urls[name].split("/")[2].rpartition(":")[2] if self.urls else "0"
            command += [f"--{name}-port", port]
        self._process, self.urls = await _started(command, self.directory.with_name("lab.log"), self.python_path)

    @property
    def pid(self) -> int:
        """Of its process."""
        assert self._process is not None
        return self._process.pid

    def end(self) -> None:
        """Kill it: what arrived is forgotten."""
        _killed(self._process)

    async def ask(self, method: str, path: str, body: Any = None) -> Any:
        """One call of its admin API."""
        sent = None if body is None else io.BytesIO(json.dumps(body).encode())  # what is long goes by pieces
        async with self._session.request(method, self.urls["admin"] + path, data=sent) as answer:
            said = await answer.json()
            assert answer.status < 300, said
            return said

    async def script(self, *rules: Json) -> None:
        """Put these fault rules in force, and no others."""
        await self.ask("POST", "/faults", list(rules))

    async def heal(self) -> None:
        """No more faults."""
        await self.ask("DELETE", "/faults")

    async def met(self) -> list[int]:
        """How often each fault rule has acted."""
        met: list[int] = (await self.ask("GET", "/faults"))["met"]
        return met

    async def copies(self) -> dict[str, dict[str, int]]:
        """Accepted copies by notification and token."""
        copies: dict[str, dict[str, int]] = await self.ask("GET", "/summary")
        return copies

    async def arrivals(self, notification_id: str) -> list[Json]:
        """The accepted pushes of one notification, in order."""
        found = await self.ask("GET", f"/received?limit=1000&notification_id={notification_id}")
        return [each for each in found["received"] if each["accepted"]]


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
        other.configure(**settings)
        return other

    async def start(self) -> None:
        """Start it and wait until every worker is ready; the second time on the same port."""
        listen = self.url.removeprefix("http://") or "127.0.0.1:0"
        program = [*self.prefix, self.python, "-m", "waypost.cli"]
        command = [*program, "serve", "--json", "--config", str(self.config_path)]
        _killed(self.process)
        log = self.directory / "serve.log"
        self.process, ready = await _started([*command, "--listen", listen], log, self.python_path)
        self.url = ready["url"]
        self.grpc = ready.get("grpc") or ""

    async def make_key(self) -> None:
        """Create the API key that the calls use; of this version, without a process of its own."""
        store = yaml.safe_load(self.config_path.read_text())["store"]
        apart = self.directory / "key.yaml"
        apart.write_text(yaml.safe_dump({"store": store, "apps": {"demo": {}}}))
        if self.python == sys.executable:
            self.key, _ = await make_key(load(apart, {}), "demo", "tests")
            return
        command = [self.python, "-m", "waypost.cli", "keys", "create", "--app", "demo", "--caller", "tests"]
        said = [*command, "--config", str(apart)]
        made = await asyncio.to_thread(
            subprocess.run, said, env=_environment(None), stdout=subprocess.PIPE, text=True, check=True
        )
        self.key = made.stdout.strip()

    @property
    def pid(self) -> int:
        """Of the supervisor; of the only worker where there is one."""
        assert self.process is not None
        return self.process.pid

    def worker_pids(self) -> list[int]:
        """The processes that do the work, by age."""
        children = [pid for pid in self._processes() if _parent(pid) == self.pid]
        return sorted(children) or [self.pid]

    async def kill(self, pid: int) -> Kill:
        """``kill -9``, and wait until it is gone and the lab has read what it had sent."""
        before = time.time()
        os.kill(pid, signal.SIGKILL)

        async def gone() -> bool:
            return _state(pid) in "XZ"

        await until(gone, f"the end of process {pid}")
        await self.lab.ask("GET", "/")  # the lab answers in the order of what reached it
        return Kill(before, time.time())

    async def ended(self, deadline_s: float = DEADLINE_S) -> int:
        """Wait for the end of the main process; its exit status."""
        assert self.process is not None
        status = await asyncio.to_thread(self.process.wait, deadline_s)
        _killed(self.process)
        return status

    def end(self) -> None:
        """Kill all of it: also workers that are frozen or lost their supervisor."""
        _killed(self.process)
        for pid in self._processes():
            os.kill(pid, signal.SIGKILL)

    def log(self, *events: str) -> list[Json]:
        """What it logged so far under these names."""
        lines = (self.directory / "serve.log").read_text().splitlines()
        records = [json.loads(line) for line in lines if line.startswith("{")]
        return [record for record in records if not events or record.get("event") in events]

    async def ask(self, method: str, path: str, body: Any = None, *, anew: bool = False) -> tuple[int, Json]:
        """One call of the API, over a kept connection or *anew*: status and body."""
        request = aiohttp.request if anew else self._session.request
        headers = {"authorization": f"Bearer {self.key}"}
        async with request(method, self.url + path, json=body, headers=headers) as answer:
            text = await answer.text()
            return answer.status, json.loads(text) if text else {}

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


async def _started(
    command: list[str], log: Path, python_path: Path | None = None
) -> tuple[subprocess.Popen[str], Json]:
    """Start *command* and read its ready line; its stderr is added to *log*."""
    process = _spawned(command, log, python_path)
    assert process.stdout is not None
    async with asyncio.timeout(START_S):
        line = await asyncio.to_thread(process.stdout.readline)
    if not line:
        _killed(process)
        raise AssertionError(f"{command[2]} did not start:\n{_end_of(log)}")
    return process, json.loads(line)


def _spawned(command: list[str], log: Path, python_path: Path | None) -> subprocess.Popen[str]:
    with log.open("a") as errors:
        environment = _environment(python_path)
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True, env=environment)


def _end_of(log: Path) -> str:
    return log.read_text()[-2000:]


def _environment(python_path: Path | None) -> Mapping[str, str]:
    """Ours, without what would configure a service."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("WAYPOST_")}
    if python_path is not None:
        kept["PYTHONPATH"] = os.pathsep.join([str(python_path), *filter(None, [kept.get("PYTHONPATH")])])
    return kept


def _killed(process: subprocess.Popen[str] | None) -> None:
    if process is None:
        return
    process.kill()
    process.wait()
    if process.stdout is not None:
        process.stdout.close()


def _state(pid: int) -> str:
    """As in proc(5); X is gone."""
    return _stat(pid)[0]


def _parent(pid: int) -> int:
    return int(_stat(pid)[1])


def _stat(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ["X", "0"]
