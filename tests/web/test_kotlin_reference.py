"""The Kotlin reference of `sdk/reference`: compiled by Kotlin's own compiler, and walked through against a service."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import time
from asyncio.subprocess import PIPE, Process
from functools import partial
from pathlib import Path

import aiohttp
import jwt
import pytest

from tests.journeys.harness import Service, running, until
from tests.web.conftest import issuer

SOURCES = Path(__file__).parents[2] / "sdk" / "reference" / "kotlin"
SECRET = "s" * 64
COMPILER = "org.jetbrains.kotlin.cli.jvm.K2JVMCompiler"

pytestmark = [pytest.mark.long, pytest.mark.asyncio]


@pytest.fixture(scope="session")
def walk(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The command that walks, compiled."""
    if (shutil.which("mvn") is None or shutil.which("java") is None) and os.environ.get("CI") != "true":
        pytest.skip("needs Java and Maven")
    folder = tmp_path_factory.mktemp("kotlin")
    fetch = [
        "mvn",
        "-B",
        "-q",
        "-f",
        f"{SOURCES / 'pom.xml'}",
        "dependency:copy-dependencies",
        "-DincludeScope=runtime",
    ]
    subprocess.run([*fetch, f"-DoutputDirectory={folder / 'lib'}"], check=True)
    path = f"{folder / 'lib'}/*"
    with_jars = ":".join(map(str, (folder / "lib").glob("*.jar")))
    compile_it = ["java", "-cp", path, COMPILER, "-no-stdlib", "-no-reflect", "-Werror", "-cp", with_jars]
    subprocess.run([*compile_it, "-d", folder / "made", *SOURCES.glob("*.kt")], check=True)
    return ["java", "-cp", f"{folder / 'made'}:{path}", "dev.waypost.reference.WalkKt"]


def token_of(user: str, secret: str) -> str:
    """A token of the user's own."""
    now = int(time.time())
    claims = {"iss": "https://site.example", "aud": "waypost", "sub": user, "iat": now, "exp": now + 600}
    return jwt.encode(claims, secret, "HS256")


async def sent(service: Service, key: str) -> str | None:
    """Send a push that is in the feed, too; None while nobody listens."""
    body = {"user_id": "ann", "title": "Your parcel is here", "channels": ["push", "inapp"], "idempotency_key": key}
    try:
        status, answer = await service.ask("POST", "/v1/notifications", body)
    except aiohttp.ClientError:
        return None
    assert status < 300, answer
    return str(answer["id"])


async def line(walker: Process) -> str:
    """The next line that it prints."""
    assert walker.stdout is not None
    return (await walker.stdout.readline()).decode().rstrip()


async def go_on(walker: Process) -> None:
    """Let it do the next step."""
    assert walker.stdin is not None
    walker.stdin.write(b"\n")
    await walker.stdin.drain()


async def test_an_app_registers_follows_over_a_cut_marks_reports_and_leaves(walk: list[str], tmp_path: Path) -> None:
    secret = tmp_path / "login.secret"
    secret.write_text(SECRET)
    async with running(tmp_path, start=False, workers=2) as service:
        service.configure(workers=2, app={"inapp": {}, "issuers": {"site": issuer(secret)}})
        await service.start()
        (token,) = (await service.lab.ask("POST", "/tokens", {"platform": "android", "count": 1}))["tokens"]
        arguments = [service.url, "ann", token_of("ann", SECRET), token]
        walker = await asyncio.create_subprocess_exec(*walk, *arguments, stdin=PIPE, stdout=PIPE)
        word, device, is_registered = (await line(walker)).split()
        assert (word, is_registered) == ("registered", "true")
        assert await line(walker) == "hello 0"
        first = await sent(service, "1")
        assert [await line(walker), await line(walker)] == [f"entry {first}", "cut"]
        await until(partial(delivered, service, first), "the push")
        for pid in service.worker_pids():
            await service.kill(pid)
        second = await until(partial(sent, service, "2"), "a worker")
        await go_on(walker)
        assert (await line(walker)).startswith("hello ")
        assert await line(walker) == f"entry {second}"
        assert await line(walker) == f"feed {second} {first} 2 null"
        assert await line(walker) == "tagged 0"
        assert await line(walker) == "reports left []"
        assert await line(walker) == "unread 1 0"
        assert await line(walker) == "refused 400 invalid_request"
        assert await line(walker) == "unregistered, refused once: true"
        assert await walker.wait() == 0
        answer = (await service.ask("GET", f"/v1/notifications/{first}"))[1]
        statuses = {each["device_id"]: each["status"] for each in answer["receipts"]}
        assert statuses == {device: "opened", "inapp:feed": "opened"}
        assert (await service.ask("GET", "/v1/devices/ann"))[1]["items"] == []


async def delivered(service: Service, notification_id: str | None) -> bool:
    """Whether the device was sent it."""
    assert notification_id is not None
    return bool(await service.lab.arrivals(notification_id))
