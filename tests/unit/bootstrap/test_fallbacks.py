"""Fallbacks inside a channel as the configuration names them."""

from __future__ import annotations

from pathlib import Path

import pytest

from waypost.bootstrap.fallbacks import check_fallbacks, fallbacks_of, stand_ins
from waypost.bootstrap.registry import load
from waypost.config import Config
from waypost.domain.channel import Channel
from waypost.domain.credential import CredentialId
from waypost.domain.errors import ConfigurationError
from waypost.domain.ids import AppId

SMTP = "{host: mail.example, sender: a@mail.example}"
FCM = "{service_account_file: fcm.json}"
SECTIONS = {"email": SMTP, "email/ses": SMTP, "email/third": SMTP, "fcm": FCM, "fcm/shop": FCM}


def configured(folder: Path, **said: str) -> Config:
    """An app with three mail servers, two projects of Firebase, and what is *said*."""
    lines = [f"    {key}: {value}" for key, value in (SECTIONS | said).items()]
    (folder / "waypost.yaml").write_text("apps:\n  demo:\n" + "\n".join(lines))
    return load(folder / "waypost.yaml", {})


def test_they_are_tried_in_the_order_in_which_they_are_named(tmp_path: Path) -> None:
    config = configured(tmp_path, fallback="{email: [third, ses]}", on_denied="fail")
    first, ses, third = (CredentialId(AppId("demo"), Channel("email"), name) for name in ("", "ses", "third"))
    check_fallbacks(config)
    found = fallbacks_of(config)
    assert found.chain(first) == (first, third, ses)
    assert found.failing == {"demo"}
    assert stand_ins(config) == {"demo/email": ["demo/email/third", "demo/email/ses"]}


def test_where_nothing_is_said_nobody_stands_in_and_all_wait(tmp_path: Path) -> None:
    found = fallbacks_of(configured(tmp_path))
    assert (dict(found.chains), found.failing) == ({}, frozenset())


@pytest.mark.parametrize(
    ("fallback", "path"),
    [
        ("{email: [none]}", "email"),
        ("{email: [ses, ses]}", "email"),
        ("{sms: [backup]}", "sms"),
        ("{pager: [backup]}", "pager"),
        ("{fcm: [shop]}", "fcm"),
    ],
    ids=["no such section", "twice", "no such channel", "unknown channel", "tokens of a project"],
)
def test_what_could_never_stand_in_is_refused(tmp_path: Path, fallback: str, path: str) -> None:
    with pytest.raises(ConfigurationError, match=f"apps.demo.fallback.{path}"):
        check_fallbacks(configured(tmp_path, fallback=fallback))
