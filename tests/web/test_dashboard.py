"""The dashboard in Debian's Chromium, over the API on a file: by keyboard, dark, on a phone, with axe."""

from __future__ import annotations

import asyncio
import json
import os
import socket
from pathlib import Path
from typing import Any

import pytest

from tests.adapters.rest import service as served_by
from tests.adapters.rest.service import Service, served, shown
from tests.contract.sql import settings_of
from tests.shows import shows
from tests.web.conftest import CHROMIUM
from waypost.bootstrap.features import tables
from waypost.domain.delivery import FailureClass
from waypost.domain.settlement import Dead
from waypost.domain.time import MINUTE_MS, Instant
from waypost.entrypoints.rest.server import ApiServer
from waypost.entrypoints.rest.serving import serve_options
from waypost.entrypoints.rest.settings import RestSettings
from waypost.features.recovery.scanning import scan
from waypost.stores.sql.database import prepare

pytestmark = pytest.mark.asyncio

SCRIPT = Path(__file__).with_name("dashboard.mjs")
PICTURES = os.environ.get("DASHBOARD_PICTURES", "")
"""The folder that screenshots are kept in; none are made where it is empty."""


async def _arranged(service: Service, caller: Any) -> dict[str, str]:
    """Let some be taken, some fail for good, and one be moved by nobody."""

    async def sent(user: str) -> str:
        answer = await caller.post("/v1/notifications", json=shown(user))
        return str(answer.json()["id"])

    failed = ""
    for n, code in enumerate(("BadDeviceToken", "UNREGISTERED", "BadDeviceToken")):
        failed = await sent(f"customer-{n}")
        await service.settled(Dead(code, "the device is gone", FailureClass.TERMINAL, letter=True))
    alert = await sent("ann")
    for _ in range(3):
        service.clock.advance(10 * MINUTE_MS)
        await scan(service.api.grounds["recovery"])
    link = f"/dashboard?token={service.invitations.link(service.clock.now())}"
    return {"link": link, "wanted": alert, "failed": failed, "alert": alert, "user": "ann"}


@pytest.mark.skipif(not Path(CHROMIUM).exists() and os.environ.get("CI") != "true", reason="needs Debian's chromium")
@shows("S4-26", "S4-61")
async def test_people_use_it_by_mouse_and_keyboard_in_light_and_dark_and_on_a_phone(
    sdk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare(settings_of(f"sqlite:///{tmp_path}/empty.db"), Instant(0), tables())
    monkeypatch.setattr(served_by, "FILE", tmp_path / "empty.db")
    async with served() as (service, caller):
        given = await _arranged(service, caller)
        listener = socket.create_server(("127.0.0.1", 0))
        server = ApiServer(service.app, listener, serve_options(RestSettings()))
        await server.start()
        base = f"http://127.0.0.1:{listener.getsockname()[1]}"
        run = await asyncio.create_subprocess_exec(
            "node", SCRIPT, base, sdk, json.dumps(given), PICTURES, stdout=asyncio.subprocess.PIPE
        )
        said, _ = await run.communicate()
        await server.stop()
    assert run.returncode == 0
    seen = json.loads(said)
    assert (seen["faults"], seen["axe"], seen["wide"]) == ([], {}, [])
    assert [name for name, is_so in seen["steps"] if not is_so] == [] and len(seen["steps"]) > 13
    assert seen["streams"] > 0
