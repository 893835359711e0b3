"""``waypost doctor`` reaches the providers of the lab, and says which one it could not reach, and why."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.certificates import Authority
from waypost.bootstrap.doctor.findings import Finding, State
from waypost.bootstrap.doctor.providers import look_at_providers
from waypost.bootstrap.registry import load
from waypost.config import Config
from waypost.lab import Lab

pytestmark = pytest.mark.asyncio
TOKEN_SID = "AC" + "0" * 32


def config_of(folder: Path, lab: Lab, ca_file: Path, **more: Any) -> Config:
    """An app with the lab's Apple and Google, and *more* accounts."""
    made = lab.settings.directory
    ca = {"ca_file": str(ca_file)}
    apns = {
        "key_file": str(made / "AuthKey.p8"),
        "key_id": lab.settings.key_id,
        "team_id": lab.settings.team_id,
        "topic": "com.example.demo",
        "endpoint": lab.urls.apns,
    }
    fcm = {"service_account_file": str(made / "fcm.json"), "endpoint": lab.urls.fcm}
    path = folder / "waypost.yaml"
    path.write_text(yaml.safe_dump({"apps": {"demo": {"apns": apns | ca, "fcm": fcm | ca, **more}}}))
    return load(path, {})


async def looked_at(config: Config) -> dict[str, Finding]:
    """What is said of providers and clocks, by place."""
    return {f"{each.check} {each.subject}": each for each in await look_at_providers(config, offline=False)}


async def test_what_answers_is_well_and_its_clock_is_compared(lab: Lab, tmp_path: Path) -> None:
    """The one that speaks first, and no TLS, is reached, too."""
    greeting = await asyncio.start_server(lambda _, writer: writer.write(b"220 hello\r\n"), "127.0.0.1", 0)
    port = greeting.sockets[0].getsockname()[1]
    mail = {"host": "127.0.0.1", "port": port, "security": "none", "sender": "me@example.com"}
    found = await looked_at(config_of(tmp_path, lab, lab.settings.directory / "ca.pem", email=mail))
    greeting.close()
    places = {name.partition(" ")[2] for name in found if name.startswith("providers")}
    assert places == {lab.urls.apns[8:], lab.urls.fcm[8:], f"127.0.0.1:{port}"}
    assert {each.state for each in found.values()} == {State.OK}, found


async def test_what_cannot_be_reached_or_is_somebody_else_says_why(lab: Lab, tmp_path: Path) -> None:
    """A certificate of an authority that is not trusted; a port that nobody has."""
    wrong = Authority(tmp_path, "another").file
    (tmp_path / "token").write_text("secret-token")
    sms = {
        "account_sid": TOKEN_SID,
        "auth_token_file": str(tmp_path / "token"),
        "from_number": "+41791234567",
        "endpoint": "https://127.0.0.1:1",
    }
    found = await looked_at(config_of(tmp_path, lab, wrong, sms=sms))
    apns, nobody = found[f"providers {lab.urls.apns[8:]}"], found["providers 127.0.0.1:1"]
    assert apns.state is nobody.state is State.PROBLEM
    assert "CERTIFICATE_VERIFY_FAILED" in apns.saw and "demo/apns" in apns.saw
    assert "cannot connect" in nobody.saw and nobody.do
