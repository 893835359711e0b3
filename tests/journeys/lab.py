"""The provider lab as a process of its own."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import aiohttp

from tests.journeys.processes import killed, started


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
        self._process, self.urls = await started(command, self.directory.with_name("lab.log"), self.python_path)

    @property
    def pid(self) -> int:
        """Of its process."""
        assert self._process is not None
        return self._process.pid

    def end(self) -> None:
        """Kill it: what arrived is forgotten."""
        killed(self._process)

    async def ask(self, method: str, path: str, body: Any = None) -> Any:
        """One call of its admin API."""
        sent = None if body is None else io.BytesIO(json.dumps(body).encode())  # what is long goes by pieces
        async with self._session.request(method, self.urls["admin"] + path, data=sent) as answer:
            said = await answer.json()
            assert answer.status < 300, said
            return said

    async def script(self, *rules: dict[str, Any]) -> None:
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

    async def arrivals(self, notification_id: str) -> list[dict[str, Any]]:
        """The accepted pushes of one notification, in order."""
        found = await self.ask("GET", f"/received?limit=1000&notification_id={notification_id}")
        return [each for each in found["received"] if each["accepted"]]
