"""A worker of many apps starts without doing for each of them what one app's worker may well do once."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import sys
from collections.abc import AsyncIterator
from copy import deepcopy
from pathlib import Path

import pytest
import yaml

from tests.journeys.processes import killed, started
from waypost.lab.credentials import write_missing, write_service_account

APPS = 100
COUNTED = """
import atexit, collections, json, os, sys

calls = collections.Counter()

def seen(frame, event, function):
    if event == "c_call":
        calls[function.__name__] += 1
    elif event == "call":
        calls[os.path.basename(os.path.dirname(frame.f_code.co_filename))] += 1

def written():
    sys.setprofile(None)
    with open(f"{folder}/{{os.getpid()}}.json", "w") as file:
        json.dump(calls, file)

atexit.register(written)
sys.setprofile(seen)
"""
"""As ``sitecustomize``. Calls of built-in functions by name, and of others by the package's folder, once it ends."""


@pytest.mark.asyncio
async def test_a_worker_signs_and_connects_for_nobody_as_it_starts_and_reads_authorities_once(tmp_path: Path) -> None:
    """500 apps took two workers 17 s of CPU: two contexts, two connections and two signatures for each app."""
    async with _counting_visitors() as (port, visitors):
        config = _config_of_many(tmp_path, f"https://127.0.0.1:{port}")
        hook = tmp_path / "hook"
        hook.mkdir()
        (hook / "sitecustomize.py").write_text(COUNTED.format(folder=hook))
        command = [sys.executable, "-m", "waypost.cli", "serve", "--json", "--config", str(config)]
        process, _ = await started(command, tmp_path / "log", hook)
        try:
            process.send_signal(signal.SIGTERM)
            assert await asyncio.to_thread(process.wait) == 0
        finally:
            killed(process)
    (calls,) = [json.loads(file.read_text()) for file in hook.glob("*.json")]
    assert not visitors, "it connects"
    assert calls.get("sign", 0) == 0
    assert calls["load_verify_locations"] <= 2, "a context for each protocol"
    assert calls["yaml"] < 1_000 * APPS, "the configuration is parsed by libyaml"


@contextlib.asynccontextmanager
async def _counting_visitors() -> AsyncIterator[tuple[int, list[asyncio.StreamWriter]]]:
    """A port, and who came there."""
    visitors: list[asyncio.StreamWriter] = []
    server = await asyncio.start_server(lambda _, writer: visitors.append(writer), "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1], visitors
    for visitor in visitors:
        visitor.transport.abort()


def _config_of_many(folder: Path, provider: str) -> Path:
    """One worker, and apps with three credentials each."""
    write_missing(folder, "demo")
    write_service_account(folder, "demo", f"{provider}/token")
    key = {"key_file": "AuthKey.p8", "key_id": "A" * 10, "team_id": "B" * 10, "topic": "t"}
    ca = {"ca_file": "ca.pem"}
    app = {
        "apns": {**key, "endpoint": provider, **ca},
        "fcm": {"service_account_file": "fcm.json", "endpoint": provider, **ca},
        "webpush": {"vapid_private_key_file": "vapid.pem", "subject": "mailto:ops@example.com", **ca},
    }
    tree = {
        "store": f"sqlite:///{folder}/waypost.db",
        "listen": "127.0.0.1:0",
        "workers": 1,
        "apps": {f"app{n}": deepcopy(app) for n in range(APPS)},  # written out for each, as a user would
    }
    file = folder / "waypost.yaml"
    file.write_text(yaml.safe_dump(tree))
    return file
