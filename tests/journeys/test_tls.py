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
from tests.journeys.harness import running

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


async def waypost(environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "waypost.cli", "send", "alice", "--title", "Hi", "--json"]
    return await asyncio.to_thread(
        subprocess.run, command, env=os.environ | environment, capture_output=True, text=True, check=False
    )
