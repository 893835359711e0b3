"""Mailboxes: the one form that is stored, and what is none."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from waypost.channels.email.mailboxes import canonical, registration_check, why_no_mailbox
from waypost.domain.device import EMAIL, Registration, SubscriptionKeys
from waypost.domain.ids import AppId, DeviceId, UserId

LOCAL_64, LABEL_63 = "a" * 64, "b" * 63


@pytest.mark.parametrize(
    ("said", "stored"),
    [
        ("ann@example.com", "ann@example.com"),
        (" Ann.Lee+news@EXAMPLE.Com\n", "Ann.Lee+news@example.com"),
        ("User@Bücher.example", "User@xn--bcher-kva.example"),
        ("o'neil!#$%&*/=?^_`{|}~-@example.com", "o'neil!#$%&*/=?^_`{|}~-@example.com"),
        ("user@日本。jp", "user@xn--wgv71a.jp"),
        (f"{LOCAL_64}@{LABEL_63}.{LABEL_63}.{'c' * 58}.de", f"{LOCAL_64}@{LABEL_63}.{LABEL_63}.{'c' * 58}.de"),
    ],
)
def test_a_mailbox_is_brought_into_one_form(said: str, stored: str) -> None:
    assert canonical(said) == stored
    assert canonical(stored) == stored
    assert why_no_mailbox(stored) is None


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("ann", "such as"),
        ("@example.com", "name"),
        ("ann@", "domain"),
        ("ann@localhost", "domain"),
        ("ann@[127.0.0.1]", "domain"),
        ("ann@127.0.0.1", "domain"),
        ("ann@example..com", "domain"),
        ("ann@-example.com", "domain"),
        ("ann@example.com.", "domain"),
        ("ann@exa mple.com", "domain"),
        ("ann lee@example.com", "name"),
        (".ann@example.com", "name"),
        ("ann..lee@example.com", "name"),
        ("ann@lee@example.com", "name"),
        ('"ann lee"@example.com', "quoted"),
        ("änn@example.com", "ASCII"),
        ("Ann <ann@example.com>", "name"),
        ("ann@example.com\r\nRCPT TO:<eve@example.com>", "name"),
        (f"{LOCAL_64}a@example.com", "name"),
        (f"ann@{LABEL_63}b.com", "domain"),
        (f"{LOCAL_64}@{LABEL_63}.{LABEL_63}.{'c' * 59}.de", "254"),
    ],
)
def test_what_is_none_comes_back_and_is_refused(said: str, why: str) -> None:
    found = why_no_mailbox(canonical(said))
    assert found is not None
    assert why in found


@given(st.text() | st.from_regex(r"[a-zA-Z.\"ü]{1,5}@[a-z0-9.-]{1,9}\.[a-zü]{2,3}", fullmatch=True))
def test_what_is_taken_is_stable_and_fits_into_a_command(text: str) -> None:
    once = canonical(text)
    assert canonical(once) == once or why_no_mailbox(once)
    if why_no_mailbox(once) is None:
        assert once.isascii() and once.isprintable() and " " not in once and len(once) <= 254


def test_a_registration_is_a_mailbox_and_nothing_else() -> None:
    good = Registration(AppId("demo"), UserId("u"), DeviceId("d"), EMAIL, "ann@example.com")
    check = registration_check(AppId("demo"), None)
    assert check(good) == []
    keyed = Registration(good.app, good.user_id, good.device_id, EMAIL, "ann", SubscriptionKeys(b"", b""))
    assert [fault.path for fault in check(keyed)] == ["keys", "token"]
