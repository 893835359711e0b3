"""Receipt tokens: whoever has one may report of its target, and of no other."""

from __future__ import annotations

import pytest

from waypost.domain.device_event import TOKEN_LENGTH, Reported, read_receipt_token, receipt_token
from waypost.domain.ids import AppId, NotificationId

SECRET = bytes(range(32))
DEMO = AppId("demo")
ID = NotificationId(b"n" * 16)


@pytest.mark.parametrize("n", [0, 1, 255, 256, 65_535])
def test_a_token_names_its_target(n: int) -> None:
    """Also where a user without a cap has more devices than a byte counts."""
    token = receipt_token(SECRET, DEMO, ID, n)
    assert len(token) == TOKEN_LENGTH
    assert read_receipt_token(SECRET, DEMO, token) == Reported(ID, n)
    assert read_receipt_token(SECRET, AppId("other"), token) is None
    assert read_receipt_token(bytes(32), DEMO, token) is None


def test_no_changed_character_is_taken() -> None:
    """But for the last one's unused bits there is one way to write a token."""
    token = receipt_token(SECRET, DEMO, ID, 3)
    for place in range(TOKEN_LENGTH - 1):
        other = "A" if token[place] != "A" else "B"
        assert read_receipt_token(SECRET, DEMO, token[:place] + other + token[place + 1 :]) is None
