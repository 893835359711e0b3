"""Many apps in one process: what senders have in common is made once."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest
import yaml

from waypost.bootstrap.registry import load
from waypost.bootstrap.senders import try_credentials
from waypost.lab.credentials import write_missing, write_service_account

APPS = 20


@pytest.mark.asyncio
async def test_the_senders_of_many_apps_share_two_tls_contexts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One for each protocol that is spoken; each would take 0.05 s of CPU, and keep the authorities in memory."""
    write_missing(tmp_path, "demo")
    write_service_account(tmp_path, "demo", "https://127.0.0.1:1/token")
    nobody, ca = "https://127.0.0.1:1", {"ca_file": "ca.pem"}
    app = {
        "apns": {
            "key_file": "AuthKey.p8",
            "key_id": "A" * 10,
            "team_id": "B" * 10,
            "topic": "t",
            "endpoint": nobody,
            **ca,
        },
        "fcm": {"service_account_file": "fcm.json", "endpoint": nobody, **ca},
        "webpush": {"vapid_private_key_file": "vapid.pem", "subject": "mailto:ops@example.com", **ca},
        "unifiedpush": {"allow_endpoints": [nobody], **ca},
    }
    file = tmp_path / "waypost.yaml"
    file.write_text(yaml.safe_dump({"apps": {f"app{n}": app for n in range(APPS)}}))
    make, made = ssl.create_default_context, list[ssl.SSLContext]()

    def counted(cafile: str | None = None) -> ssl.SSLContext:
        made.append(make(cafile=cafile))
        return made[-1]

    monkeypatch.setattr(ssl, "create_default_context", counted)
    tried = await try_credentials(load(file, {}))
    assert len(tried) == 4 * APPS and not any(tried.values())
    assert len(made) == 2
