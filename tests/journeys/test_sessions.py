"""An end user's session is in the token that they bring: no process holds any of it."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.adapters.rest.issuers import user_token, users_issuer
from tests.journeys.harness import running, until
from tests.shows import shows

pytestmark = pytest.mark.asyncio


@shows("S1-107", "S3-73")
async def test_a_session_goes_on_when_one_of_two_processes_is_killed(tmp_path: Path) -> None:
    """No answer says 401 or 404, and what the user did before is there."""
    issuer = users_issuer(tmp_path).settings
    login: dict[str, Any] = {
        "issuer": issuer.issuer,
        "audience": issuer.audience,
        "algorithms": [each.value for each in issuer.algorithms],
        "jwks_file": issuer.jwks_file,
        "users": True,
        "scopes": [each.value for each in issuer.scopes],
    }
    async with running(tmp_path, workers=2, app={"issuers": {"login": login}}) as service:
        _, made = await service.ask("POST", "/v1/notifications", {"user_id": "user-1", "title": "Hello"})
        now_s = int(time.time())
        service.key = user_token("user-1", iat=now_s, exp=now_s + 3_600)
        path = f"/api/notifications/{made['id']}"
        status, read = await service.ask("PATCH", f"{path}/read")
        assert status == 200
        first, second = service.worker_pids()
        answered: list[int] = []

        async def goes_on() -> bool:
            with contextlib.suppress(aiohttp.ClientError):  # a connection to who was killed
                status, found = await service.ask("GET", path, anew=True)
                assert (status, found["data"]["read_at"]) == (200, read["data"]["read_at"])
                answered.append(status)
            return len(answered) >= 20

        await service.kill(first)
        await until(goes_on, "twenty answers by who is left, and by who took the other's place")
        await service.kill(second)
        answered.clear()
        await until(goes_on, "twenty more without either of the first two")
