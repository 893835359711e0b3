"""Codes and links: bound to their address, their number and our secret."""

from __future__ import annotations

import pytest

from waypost.domain.contact_code import (
    LinkedCode,
    PendingCode,
    code_of,
    counted_as,
    is_code,
    link_token,
    read_link_token,
)
from waypost.domain.ids import AppId, UserId
from waypost.domain.time import Instant

SECRET, DEMO = bytes(range(32)), AppId("demo")
PENDING = PendingCode(b"a" * 16, b"n" * 16, Instant(1))
LINKED = LinkedCode(UserId("ann/ä"), b"n" * 16)


def test_a_code_has_six_digits_and_is_another_for_each_number_address_and_secret() -> None:
    codes = {code_of(SECRET, PendingCode(PENDING.address, bytes([n]) * 16, Instant(1))) for n in range(200)}
    assert len(codes) > 190
    assert all(len(code) == 6 and code.isdecimal() for code in codes)
    code = code_of(SECRET, PENDING)
    assert is_code(SECRET, PENDING, code)
    assert not is_code(SECRET, PendingCode(b"b" * 16, PENDING.nonce, Instant(1)), code)
    assert not is_code(bytes(32), PENDING, code)
    assert not is_code(SECRET, PENDING, "")


def test_a_link_is_read_back_and_nothing_else_is() -> None:
    token = link_token(SECRET, DEMO, LINKED)
    assert read_link_token(SECRET, DEMO, token) == LINKED
    assert read_link_token(SECRET, AppId("other"), token) is None
    assert read_link_token(bytes(32), DEMO, token) is None


@pytest.mark.parametrize("token", ["", "A", "é", "AAAA", "A" * 43, "=" * 43, "A" * 500, "%2e%2e"])
def test_what_is_no_token_is_none(token: str) -> None:
    assert read_link_token(SECRET, DEMO, token) is None


def test_every_change_of_a_token_is_noticed() -> None:
    token = link_token(SECRET, DEMO, LINKED)
    for place, letter in enumerate(token):
        changed = token[:place] + ("B" if letter == "A" else "A") + token[place + 1 :]
        assert read_link_token(SECRET, DEMO, changed) is None


def test_addresses_are_counted_under_names_that_tell_nothing_of_them() -> None:
    assert counted_as(SECRET, DEMO, "ann@example.com") != counted_as(SECRET, DEMO, "bob@example.com")
    assert counted_as(SECRET, DEMO, "ann@example.com") != counted_as(SECRET, AppId("other"), "ann@example.com")
