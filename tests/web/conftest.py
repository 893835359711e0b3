"""The web client: installed and built once, then its own tests run, of which each test here looks at some."""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import os
import secrets
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from tests.journeys.harness import Service, running
from tests.ports import reserved_port
from tests.web.report import Report

SDK: Final = Path(__file__).resolve().parents[2] / "sdk"
LOCK: Final = SDK.parent / ".cache" / "sdk.lock"
CHROMIUM: Final = "/usr/bin/chromium"
OLDEST_NODE: Final = 20
FILES_AT_ONCE: Final = 2
TYPES: Final = {"offer": {"titles": {"en": "Offers", "de": "Angebote"}}, "code": {"critical": True}}


@pytest.fixture(scope="session")
def sdk() -> Path:
    """The folder of the web client, with its tools installed and its packages built."""
    node = shutil.which("node")
    is_there = node is not None and shutil.which("npm") is not None and _version(node) >= OLDEST_NODE
    if not is_there and os.environ.get("CI") != "true":
        pytest.skip(f"needs Node.js {OLDEST_NODE} or newer, with npm")
    LOCK.parent.mkdir(exist_ok=True)
    with LOCK.open("w") as lock:  # runners side by side share the folder
        fcntl.flock(lock, fcntl.LOCK_EX)
        _unless_done("installed", [SDK / "package-lock.json"], "ci", "--no-audit", "--no-fund", "--ignore-scripts")
        sources = [SDK / "build.mjs", *sorted(SDK.glob("*/src/**/*.ts"))]
        _unless_done("built", sources, "run", "--silent", "packages")
    return SDK


def _unless_done(what: str, made_of: list[Path], *arguments: str) -> None:
    stamp = SDK / "node_modules" / f".{what}"
    wanted = hashlib.sha256(b"".join(path.read_bytes() for path in made_of)).hexdigest()
    if not stamp.exists() or stamp.read_text() != wanted:
        ended = subprocess.run(["npm", *arguments], cwd=SDK, capture_output=True, text=True, check=False)
        assert ended.returncode == 0, f"npm {' '.join(arguments)}\n{ended.stdout}\n{ended.stderr}"
        stamp.write_text(wanted)


@pytest.fixture(scope="session")
def logic(sdk: Path, tmp_path_factory: pytest.TempPathFactory) -> Report:
    """What the tests of its logic said."""
    return _vitest("logic", tmp_path_factory.mktemp("logic") / "results.json", {})


@pytest.fixture(scope="session")
def browser(sdk: Path, tmp_path_factory: pytest.TempPathFactory) -> Report:
    """What the tests in Chromium said, against a real service and its lab."""
    if not Path(CHROMIUM).exists() and os.environ.get("CI") != "true":
        pytest.skip("needs Debian's chromium")
    return asyncio.run(_in_browser(tmp_path_factory.mktemp("browser")))


async def _in_browser(folder: Path) -> Report:
    service_port, *site_ports = (reserved_port() for _ in range(1 + FILES_AT_ONCE))
    secret, receipts = folder / "login.secret", folder / "receipts.key"
    secret.write_text(secrets.token_hex(32))
    receipts.write_bytes(secrets.token_bytes(32))
    receipts.chmod(0o600)
    async with running(folder, start=False, workers=1) as service:
        service.url = f"http://127.0.0.1:{service_port}"
        service.configure(
            app={"inapp": {}, "issuers": {"site": issuer(secret)}, "types": TYPES},
            receipts={"secret_file": str(receipts), "in_every_push": True},
            rest={
                "public_url": service.url,
                "cors_origins": [f"http://localhost:{port}" for port in site_ports],
            },
        )
        await service.start()
        given = _given(service, secret, site_ports)
        return await asyncio.to_thread(_vitest, "browser", folder / "results.json", given)


def issuer(secret: Path) -> dict[str, Any]:
    names = {"issuer": "https://site.example", "audience": "waypost", "algorithms": ["HS256"]}
    return names | {"secret": f"file:{secret}", "users": True, "scopes": ["read", "devices"]}


def _given(service: Service, secret: Path, site_ports: list[int]) -> dict[str, str]:
    return {
        "WAYPOST_URL": service.url,
        "WAYPOST_API_KEY": service.key,
        "LAB_ADMIN": service.lab.urls["admin"],
        "SITE_PORTS": ",".join(map(str, site_ports)),
        "TOKEN_SECRET": secret.read_text(),
    }


def _vitest(project: str, record: Path, environ: Mapping[str, str]) -> Report:
    command = ["npx", "vitest", "run", "--project", project, "--reporter=default", "--reporter=json"]
    ended = subprocess.run(
        [*command, f"--outputFile={record}"],
        cwd=SDK,
        env={**os.environ, **environ, "NO_COLOR": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return Report(record, ended.stdout)


def _version(node: str) -> int:
    said = subprocess.run([node, "--version"], capture_output=True, text=True, check=True).stdout
    return int(said.removeprefix("v").partition(".")[0])
