"""Retry-After is seconds or a date (RFC 9110, section 10.2.3)."""

from __future__ import annotations

from email.utils import formatdate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from waypost.http2.retry_after import retry_after_ms

NOW_MS = 1_800_000_000_000


def read(text: str) -> int | None:
    return retry_after_ms(((b"retry-after", text.encode()),), NOW_MS)


@pytest.mark.parametrize(
    ("text", "wait_ms"),
    [
        ("0", 0),
        ("120", 120_000),
        (" 7 ", 7_000),
        (formatdate(NOW_MS / 1000 + 90, usegmt=True), 90_000),
        (formatdate(NOW_MS / 1000 - 90, usegmt=True), 0),
        ("soon", None),
        ("-5", None),
        ("1.5", None),
        ("", None),
    ],
)
def test_seconds_or_a_date(text: str, wait_ms: int | None) -> None:
    assert read(text) == wait_ms


def test_no_header_is_no_hint() -> None:
    assert retry_after_ms(((b"date", b"x"),), NOW_MS) is None


@given(st.text(alphabet=st.characters(codec="latin-1")))
def test_no_text_breaks_it(text: str) -> None:
    wait_ms = retry_after_ms(((b"retry-after", text.encode("latin-1")),), NOW_MS)
    assert wait_ms is None or wait_ms >= 0
