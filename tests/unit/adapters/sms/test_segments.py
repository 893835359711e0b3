"""In how many parts a text travels, at the edges of each count."""

from __future__ import annotations

import pytest

from waypost.channels.sms.segments import BASIC, EXTENDED, Segments, segments_of


@pytest.mark.parametrize(
    ("text", "encoding", "units", "count"),
    [
        ("", "GSM-7", 0, 0),
        ("a" * 160, "GSM-7", 160, 1),
        ("a" * 161, "GSM-7", 161, 2),
        ("a" * 306, "GSM-7", 306, 2),
        ("a" * 307, "GSM-7", 307, 3),
        ("€" * 80, "GSM-7", 160, 1),
        ("€" * 81, "GSM-7", 162, 2),
        # A character of two septets is not divided: the 153rd septet of the first part stays empty.
        ("a" * 152 + "€" * 5, "GSM-7", 162, 2),
        ("€" * 152, "GSM-7", 304, 2),
        ("€" * 153, "GSM-7", 306, 3),
        ("ж" * 70, "UCS-2", 70, 1),
        ("ж" * 71, "UCS-2", 71, 2),
        ("ж" * 134, "UCS-2", 134, 2),
        ("ж" * 135, "UCS-2", 135, 3),
        ("a" * 159 + "ж", "UCS-2", 160, 3),
        ("😀" * 35, "UCS-2", 70, 1),
        ("😀" * 36, "UCS-2", 72, 2),
        # Nor are the two halves of one beyond the first plane: 33 of them fill 66 of 67.
        ("😀" * 66, "UCS-2", 132, 2),
        ("😀" * 67, "UCS-2", 134, 3),
    ],
)
def test_a_text_is_counted_as_it_travels(text: str, encoding: str, units: int, count: int) -> None:
    assert segments_of(text) == Segments(encoding, units, count)  # type: ignore[arg-type]


def test_the_alphabet_is_whole() -> None:
    """Of its 128 places one is the escape to the extension."""
    assert len(BASIC) == 127
    assert not BASIC & EXTENDED
