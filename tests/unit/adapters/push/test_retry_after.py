"""Retry-After is seconds or a date (RFC 9110, section 10.2.3)."""

from __future__ import annotations

from email.utils import formatdate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.adapters.deliveries import NOW, answer
from waypost.channels.push.retry_after import retry_after_ms
from waypost.http2 import Answer


def read(text: str) -> int | None:
    return retry_after_ms(answer(429, retry_after=text), NOW)


@pytest.mark.parametrize(
    ("text", "wait_ms"),
    [
        ("0", 0),
        ("120", 120_000),
        (" 7 ", 7_000),
        (formatdate(NOW / 1000 + 90, usegmt=True), 90_000),
        (formatdate(NOW / 1000 - 90, usegmt=True), 0),
        ("soon", None),
        ("-5", None),
        ("1.5", None),
        ("", None),
    ],
)
def test_seconds_or_a_date(text: str, wait_ms: int | None) -> None:
    assert read(text) == wait_ms


def test_no_header_is_no_hint() -> None:
    assert retry_after_ms(answer(429, date="x"), NOW) is None


@given(st.text(alphabet=st.characters(codec="latin-1")))
def test_no_text_breaks_it(text: str) -> None:
    wait_ms = retry_after_ms(Answer(429, ((b"retry-after", text.encode("latin-1")),), b""), NOW)
    assert wait_ms is None or wait_ms >= 0
