"""A real provider of OpenID Connect, another's program on Node.js, and people who log in there."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
from msgspec import Struct

HERE: Final = Path(__file__).parent / "oidc"
LOCK: Final = Path(__file__).resolve().parents[3] / ".cache" / "oidc.lock"


class RunningProvider(Struct, frozen=True):
    """A provider with the people that it knows."""

    issuer: str
    file: Path

    def know(self, name: str, **claims: Any) -> None:
        """Say of somebody *claims* from the next login on."""
        people = json.loads(self.file.read_text())
        self.file.write_text(json.dumps(people | {name: claims}))


@contextmanager
def running_provider(folder: Path, redirect_uri: str) -> Iterator[RunningProvider]:
    """Start one, and end it."""
    if (shutil.which("node") is None or shutil.which("npm") is None) and os.environ.get("CI") != "true":
        pytest.skip("needs Node.js with npm")
    _install()
    people = folder / "people.json"
    people.write_text("{}")
    command = ["node", "provider.mjs", str(people), redirect_uri]
    with (
        (folder / "provider.log").open("w") as log,
        subprocess.Popen(command, cwd=HERE, stdout=subprocess.PIPE, stderr=log, text=True) as process,
    ):
        try:
            assert process.stdout is not None
            issuer = process.stdout.readline().strip()
            assert issuer, (folder / "provider.log").read_text()
            yield RunningProvider(issuer, people)
        finally:
            process.terminate()


async def agreed(address: str, name: str) -> httpx.URL:
    """Log in as *name* at the provider with a browser of one's own, agree, and return where it leads then."""
    async with httpx.AsyncClient() as browser:
        answer = await browser.get(address)
        for prompt in ("login", "consent"):
            while answer.is_redirect and answer.next_request is not None:
                if "/-/oidc/callback" in answer.headers["location"]:
                    return httpx.URL(answer.headers["location"])
                answer = await browser.get(answer.next_request.url)
            assert answer.status_code == 200, answer.text
            form = {"prompt": prompt, "login": name, "password": "any"}
            answer = await browser.post(answer.url, data=form)
        while "/-/oidc/callback" not in answer.headers["location"]:
            assert answer.next_request is not None
            answer = await browser.get(answer.next_request.url)
        return httpx.URL(answer.headers["location"])


def _install() -> None:
    """Install it as the lock file says, once for all runners beside each other."""
    stamp, wanted = HERE / "node_modules" / ".installed", hashlib.sha256((HERE / "package-lock.json").read_bytes())
    LOCK.parent.mkdir(exist_ok=True)
    with LOCK.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not stamp.exists() or stamp.read_text() != wanted.hexdigest():
            command = ["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts"]
            ended = subprocess.run(command, cwd=HERE, capture_output=True, text=True, check=False)
            assert ended.returncode == 0, ended.stdout + ended.stderr
            stamp.write_text(wanted.hexdigest())
