"""How overrides are laid on what we would say."""

from __future__ import annotations

from typing import Any

import pytest

from waypost.channels.push.payload import overlaid, too_large


@pytest.mark.parametrize(
    ("over", "result"),
    [
        ({}, {"a": {"b": 1, "c": 2}}),
        ({"a": {"b": 3}}, {"a": {"b": 3, "c": 2}}),
        ({"a": 4}, {"a": 4}),
        ({"a": {"c": {"d": 5}}}, {"a": {"b": 1, "c": {"d": 5}}}),
        ({"e": [6]}, {"a": {"b": 1, "c": 2}, "e": [6]}),
    ],
)
def test_objects_are_merged_key_by_key_and_all_else_is_replaced(over: dict[str, Any], result: dict[str, Any]) -> None:
    base = {"a": {"b": 1, "c": 2}}
    assert overlaid(base, over) == result
    assert base == {"a": {"b": 1, "c": 2}}


def test_a_payload_may_be_as_large_as_the_limit() -> None:
    assert too_large(4096, 4096) is None
    refusal = too_large(4097, 4096)
    assert refusal is not None
    assert refusal.why == "4097 bytes, limit 4096"
