"""Verified contacts: what is refused at the start, what an unproved address gets, and where its code is put."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.unit.domain.made import CHANNELS, NOW, device, notification
from waypost.bootstrap.registry import load
from waypost.domain.content import Content
from waypost.domain.device import EMAIL, PHONE, TokenUse
from waypost.domain.errors import ConfigurationError
from waypost.domain.message import message_of
from waypost.domain.recipient import Recipient
from waypost.domain.routing import Candidate, Question
from waypost.domain.settlement import Suppressed
from waypost.features.contacts.settings import check_contacts
from waypost.features.contacts.verifying import CALLER, FEATURE, RULE, Proofs, Words, render

SMTP = "email: {host: mail.example, sender: news@example.com}"
MAILBOX = device(platform=EMAIL, token="ann@example.com")
NUMBER = device(platform=PHONE, token="+491701234567")
WORDS = Words("123456", "https://x/v/demo/t", "10")
PENDING = Proofs(("email",), frozenset(), {MAILBOX.token_hash: WORDS})
UNKNOWN = Proofs(("email",), frozenset(), {})
PROVED = Proofs(("email",), frozenset({MAILBOX.token_hash}), {})


@pytest.mark.parametrize(
    ("said", "path"),
    [
        ("", None),
        ("contacts: {text: none}", None),
        ("contacts: {verify: [phone]}", "contacts.secret_file: is required"),
        ("contacts: {verify: [phone]}\ncontacts: {secret_file: short}", "contacts.secret_file: has 5 bytes"),
        ("contacts: {verify: [phone]}\ncontacts: {secret_file: away}", "contacts.secret_file: cannot be read"),
        ("contacts: {verify: [phone], text: none}\ncontacts: {secret_file: key}", r"apps\.demo\.contacts\.text"),
        ('contacts: {verify: [phone], text: "{link}"}\ncontacts: {secret_file: key}', r"rest\.public_url"),
        ("contacts: {verify: [phone]}\ncontacts: {secret_file: key}", None),
    ],
)
def test_what_could_never_be_verified_is_refused(tmp_path: Path, said: str, path: str | None) -> None:
    (tmp_path / "key").write_bytes(bytes(32))
    (tmp_path / "short").write_bytes(bytes(5))
    (tmp_path / "waypost.yaml").write_text(f"apps:\n  demo:\n    {SMTP}\n    {said}")
    config = load(tmp_path / "waypost.yaml", {})
    if path is None:
        check_contacts(config)
        return
    with pytest.raises(ConfigurationError, match=path):
        check_contacts(config)


@pytest.mark.parametrize(
    ("known", "address", "caller", "expected"),
    [
        (None, MAILBOX, "shop", None),
        (UNKNOWN, MAILBOX, "shop", Suppressed("unverified")),
        (PENDING, MAILBOX, "shop", Suppressed("unverified")),
        (PROVED, MAILBOX, "shop", None),
        (UNKNOWN, NUMBER, "shop", None),
        (UNKNOWN, device(), "shop", None),
        (PENDING, MAILBOX, CALLER, None),
        (UNKNOWN, MAILBOX, CALLER, Suppressed("no_code")),
        (PROVED, MAILBOX, CALLER, Suppressed("no_code")),
        (PROVED, device(platform=EMAIL, token="other@example.com"), "shop", Suppressed("unverified")),
    ],
)
def test_an_unproved_address_gets_its_code_alone(
    known: Proofs | None, address: Any, caller: str, expected: Any
) -> None:
    recipient = Recipient([address], {FEATURE: known})
    question = Question(notification(caller=caller), recipient, CHANNELS, {}, {}, TokenUse.ALERT, (), NOW)
    assert RULE.judge is not None
    assert RULE.judge(question, Candidate(address.device_id, address, None)) == expected


def test_the_code_is_put_into_what_leaves_for_its_address_alone() -> None:
    said = Content(title="{code}", body="{code} or {link}, for {minutes} minutes")
    message = message_of(notification(content=said))
    sent = render(message, MAILBOX, Recipient((), {FEATURE: PENDING})).content
    assert (sent.title, sent.body) == ("123456", "123456 or https://x/v/demo/t, for 10 minutes")
    for known, address in ((PENDING, NUMBER), (PROVED, MAILBOX), (None, MAILBOX)):
        assert render(message, address, Recipient((), {FEATURE: known})).content == said
