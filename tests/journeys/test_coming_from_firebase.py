"""The page for those who come from firebase-admin: what it shows runs, against a served Waypost and the lab."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.journeys.harness import Service, running, until
from waypost.bootstrap.registry import load
from waypost.domain.ids import token_hash

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "coming-from-firebase-admin.md").read_text(encoding="utf-8")
SERVER = (DOCS / "on-a-server.md").read_text(encoding="utf-8")


def program(language: str) -> str:
    """All blocks of the page in *language*, which are one program."""
    return "\n".join(re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL))


async def said_by(service: Service, token: str, *command: str) -> list[str]:
    """The lines of a program that ends well."""
    environ = os.environ | {"WAYPOST_URL": service.url, "WAYPOST_API_KEY": service.key, "REGISTRATION_TOKEN": token}
    run = await asyncio.create_subprocess_exec(*command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    said, errors = await run.communicate()
    assert run.returncode == 0, errors.decode()
    return said.decode().splitlines()


async def new_token(service: Service) -> str:
    """A registration token that the lab knows."""
    made: dict[str, Any] = await service.lab.ask("POST", "/tokens", {"platform": "android"})
    token: str = made["tokens"][0]
    return token


async def arrived(service: Service, lines: list[str]) -> int:
    """How many notifications a program had accepted, each of which the lab has."""
    ids = [line.split()[1] for line in lines if line.startswith("accepted")]
    for id_ in ids:
        await until(lambda wanted=id_: service.lab.arrivals(wanted), f"{id_} at the lab")  # type: ignore[misc] # its default
    return len(ids)


async def shown(service: Service, id_: str) -> dict[str, Any] | None:
    """A notification, once it is final."""
    status, said = await service.ask("GET", f"/v1/notifications/{id_}")
    assert status == 200, said
    return said if said["notification"]["finished_at"] else None


@pytest.mark.asyncio
async def test_the_pages_python_and_node_send_and_a_dead_token_is_forgotten(tmp_path: Path) -> None:
    """The dead token is one that was sent to without being registered: it is a device like all others."""
    node = shutil.which("node")
    if node is None and os.environ.get("CI") == "true":
        pytest.fail("node is not installed")
    async with running(tmp_path, workers=1) as service:
        lines = await said_by(service, await new_token(service), sys.executable, "-c", program("python"))
        assert "refused 1: invalid_request" in lines
        assert any(line.startswith("explained") and "waypost_id" in line for line in lines)
        assert await arrived(service, lines) == 4
        if node is not None:
            script = ["--input-type=module", "--eval", program("js")]
            lines = await said_by(service, await new_token(service), node, *script)
            assert "refused 1: invalid_request" in lines
            assert await arrived(service, lines) == 3
        token = await new_token(service)
        owner = f"token:{token_hash(token).hex()}"
        await service.lab.script({"do": {"gone": {}}})
        status, said = await service.ask(
            "POST", "/v1/notifications", {"device": {"platform": "android", "token": token}, "title": "Hi"}
        )
        assert status == 202, said
        ended = await until(lambda: shown(service, said["id"]), "its end")
        assert ended["notification"]["user_id"] == owner
        assert [(receipt["code"], receipt["reason"]) for receipt in ended["receipts"]] == [("UNREGISTERED", "gone")]

        async def forgotten() -> bool:
            return (await service.ask("GET", f"/v1/devices/{owner}"))[1] == {"items": []}

        await until(forgotten, "its device is deactivated")


@pytest.mark.asyncio
async def test_the_first_send_of_the_server_page_arrives(tmp_path: Path) -> None:
    """As it stands there, to a token that nobody has registered."""
    (line,) = re.findall(r"^(.*/opt/waypost/bin/waypost send .*)$", SERVER, re.MULTILINE)
    command = line.replace("/opt/waypost/bin/waypost", '"$0" -m waypost.cli')
    async with running(tmp_path, workers=1) as service:
        token = await new_token(service)
        lines = await said_by(service, token, "sh", "-c", command, sys.executable)
        assert any("It works" in line and "sent" in line for line in lines)


def test_the_configuration_of_the_server_page_is_one(tmp_path: Path) -> None:
    (text,) = re.findall(r"<<'EOF'\n(.*?)EOF\n", SERVER, re.DOTALL)
    path = tmp_path / "waypost.yaml"
    path.write_text(text.replace("/etc/waypost", str(tmp_path)).replace("/var/lib/waypost", str(tmp_path)))
    (tmp_path / "fcm.json").write_text("{}")
    assert load(path, {}).apps.keys() == {"shop"}
