"""API keys as text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from waypost.domain import api_key


@given(st.binary(min_size=api_key.RANDOM_BYTES, max_size=api_key.RANDOM_BYTES))
def test_a_key_is_found_by_its_prefix_and_proved_by_its_hash(randomness: bytes) -> None:
    """The text alone holds the secret."""
    key = api_key.make(randomness)
    assert api_key.prefix_of(key.text) == key.prefix
    assert len(key.prefix) == len("wp_") + 8
    assert api_key.matches(api_key.hashed(key.text), key.secret_hash)
    assert not api_key.matches(api_key.hashed(key.text + "a"), key.secret_hash)


def test_different_randomness_makes_different_keys() -> None:
    """In prefix and secret."""
    keys = [api_key.make(bytes([n]) * api_key.RANDOM_BYTES) for n in range(50)]
    assert len({key.prefix for key in keys}) == len({key.secret_hash for key in keys}) == 50


def test_too_little_randomness_is_an_error() -> None:
    """A guessable key must not come about by accident."""
    with pytest.raises(ValueError, match="random bytes"):
        api_key.make(b"short")


WRONG = [
    "",
    "wp_",
    "wp_abcdefgh",
    "wp_ABCDEFGH_" + "a" * 52,
    "xx_abcdefgh_" + "a" * 52,
    "wp_abcdefgh_" + "a" * 31,
    "wp_abcdefgh_" + "a" * 52 + "\n",
    "wp_abcdefgh_" + "é" * 52,
]


@pytest.mark.parametrize("text", WRONG)
def test_what_has_not_the_shape_of_a_key_is_none(text: str) -> None:
    """No look-up is spent on it."""
    assert api_key.prefix_of(text) is None
