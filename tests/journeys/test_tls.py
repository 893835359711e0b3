"""A served Waypost behind TLS, asked by its own command line."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.certificates import Authority
from tests.journeys.harness import running, until
from waypost.client import AsyncClient

pytestmark = pytest.mark.asyncio


async def test_workers_share_a_port_with_tls_and_the_command_line_gets_in_with_its_certificate(tmp_path: Path) -> None:
    servers, callers = Authority(tmp_path, "servers"), Authority(tmp_path, "callers")
    certificate, key = map(str, servers.issue("server"))
    own, _ = callers.issue("caller")
    tls = {"certificate_file": certificate, "key_file": key, "client_ca_file": str(callers.file)}
    async with running(tmp_path, workers=2, rest={"tls": tls}) as service:
        assert service.url.startswith("https://")
        given = {"WAYPOST_URL": service.url, "WAYPOST_API_KEY": service.key, "WAYPOST_CA": str(servers.file)}
        refused = await waypost(given)
        assert "no answer" in refused.stderr
        taken = await waypost(given | {"WAYPOST_CERT": str(own)})
        assert json.loads(taken.stdout)["id"], taken.stderr


async def test_the_end_of_a_certificate_is_told_and_a_new_one_is_taken_up(tmp_path: Path) -> None:
    """By one of two workers; no connection is needed to see the new one, and nothing is restarted."""
    before, after = Authority(tmp_path, "before"), Authority(tmp_path, "after")
    certificate, key = map(str, before.issue("server", days=12))
    tls = {"certificate_file": certificate, "key_file": key}
    async with running(tmp_path, workers=2, rest={"tls": tls}) as service:

        async def ending() -> bool:
            return bool(service.log("credential.ending"))

        await until(ending, "a word of the end")
        (told,) = service.log("credential.ending")
        assert (told["credential"], told["days_left"], told["worker"]) == ("rest.tls", 12, 0)
        async with AsyncClient(service.url, None, ca_file=before.file) as old:
            assert (await old.ready())["checks"]["credential rest.tls"] == "ends in 12 days"
            for new, file in zip(after.issue("renewed"), (certificate, key), strict=True):
                os.replace(new, file)

            async def taken_up() -> bool:
                return len(service.log("credential.reloaded")) == 2

            await until(taken_up, "the new certificate in both workers")
            async with AsyncClient(service.url, None, ca_file=after.file) as new_client:
                assert "credential rest.tls" not in (await new_client.ready())["checks"]
            assert await old.ready()
        assert [each["days_left"] for each in service.log("credential.ending")] == [12]


async def waypost(environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "waypost.cli", "send", "alice", "--title", "Hi", "--json"]
    return await asyncio.to_thread(
        subprocess.run, command, env=os.environ | environment, capture_output=True, text=True, check=False
    )
