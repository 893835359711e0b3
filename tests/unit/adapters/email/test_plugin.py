"""The plug-in of e-mail: which settings it takes, and that it is there without its client."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from tests.adapters.senders.bench import SystemClock
from waypost.channels.email.plugin import PLUGIN
from waypost.channels.email.settings import EmailSettings
from waypost.domain.credential import CredentialId
from waypost.domain.errors import ConfigurationError
from waypost.domain.ids import AppId
from waypost.ports.plugin import Means
from waypost.telemetry.sink import Silent

DEMO, MEANS = CredentialId.of(AppId("demo"), "email"), Means(SystemClock(), Silent())


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"security": "none", "host": "mail.example.com"}, "security"),
        ({"username": None}, "username"),
        ({"password_file": None}, "password_file"),
        ({"token_file": "x"}, "token_file"),
        ({"password_file": "/nowhere/at/all"}, "password_file"),
        ({"sender": "nobody"}, "sender"),
        ({"bounces_to": "nobody"}, "bounces_to"),
        ({"ca_file": __file__}, "ca_file"),
        ({"dkim_selector": "lab"}, "dkim_key_file"),
        ({"dkim_selector": "lab", "dkim_key_file": __file__}, "dkim_key_file"),
        ({"unsubscribe_url": "https://example.com/u"}, "unsubscribe_url"),
        ({"unsubscribe_url": "https://example.com/{token}"}, "unsubscribe_key_file"),
        ({"unsubscribe_mailto": "nobody"}, "unsubscribe_mailto"),
        ({"callback_password_file": __file__ + "x"}, "callback_password_file"),
    ],
)
async def test_settings_that_cannot_be_used_are_named(tmp_path: Path, fields: dict[str, Any], path: str) -> None:
    (tmp_path / "password").write_text("secret")
    good = EmailSettings(
        host="localhost", sender="news@example.com", username="us", password_file=str(tmp_path / "password")
    )
    sender = PLUGIN.build(DEMO, good, MEANS)
    await sender.start()
    with pytest.raises(ConfigurationError) as caught:
        await PLUGIN.build(DEMO, replace(good, **fields), MEANS).start()
    assert caught.value.path == f"apps.demo.email.{path}"


def test_without_its_client_the_section_says_what_to_install_and_the_plug_in_is_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("sender", "pool", "session"):
        monkeypatch.delitem(sys.modules, f"waypost.channels.email.{name}", raising=False)
    monkeypatch.setitem(sys.modules, "aiosmtplib", None)
    with pytest.raises(ConfigurationError) as caught:
        PLUGIN.build(DEMO, EmailSettings(host="localhost", sender="news@example.com"), MEANS)
    assert str(caught.value).startswith("apps.demo.email: its client is not installed: pip install '.[email]'")


def test_who_does_not_send_email_does_not_load_its_client() -> None:
    program = "import sys, waypost.bootstrap.registry as r; r.installed(); print({'aiosmtplib'} & {*sys.modules})"
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert said.stdout == "set()\n"
