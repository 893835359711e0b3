"""The price class of a message: how many segments go to which country."""

from __future__ import annotations

import pytest

from waypost.channels.sms.prices import country_code, price_class


@pytest.mark.parametrize(
    ("number", "code"),
    [
        ("+15550100199", "+1"),
        ("+77012345678", "+7"),
        ("+491701234567", "+49"),
        ("+447700900123", "+44"),
        ("+359881234567", "+359"),
        ("+85291234567", "+852"),
        ("+2348012345678", "+234"),
        ("+27821234567", "+27"),
        ("+37069912345", "+370"),
        ("+96512345678", "+965"),
    ],
)
def test_a_number_has_the_code_of_its_country(number: str, code: str) -> None:
    assert country_code(number) == code


def test_the_class_counts_segments_and_hides_the_number() -> None:
    assert price_class(1, "+491701234567") == "1 segment to +49"
    assert price_class(3, "+15550100199") == "3 segments to +1"
