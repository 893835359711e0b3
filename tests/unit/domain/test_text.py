"""Text without what nobody can see."""

from __future__ import annotations

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from tests.shows import shows
from waypost.domain.text import cleaned, cleaned_line


@shows("S3-32")
@given(st.text())
def test_no_control_character_is_left_but_tabs_and_line_feeds(text: str) -> None:
    left = cleaned(text)
    assert not [one for one in left if unicodedata.category(one) == "Cc" and one not in "\t\n"]
    assert cleaned(left) == left


@given(st.text(st.characters(exclude_categories=["Cc", "Cs"])))
def test_whatever_else_there_is_stays(text: str) -> None:
    assert cleaned(text) == text.strip()


@given(st.text())
def test_a_line_has_no_control_character_at_all(text: str) -> None:
    left = cleaned_line(text)
    assert not [one for one in left if unicodedata.category(one) == "Cc"]
    assert len(left) <= len(text)
