"""Storable: what a JSON object must not hold, so that every store can keep it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

DATA_DEPTH_LIMIT: Final = 16


def why_unstorable(fields: Mapping[Any, Any]) -> str | None:
    """Explain why a JSON object cannot be stored, without recursion: hostile input must not exhaust the stack."""
    if set(map(type, fields.values())) == {str}:  # as it is with most
        return None
    depth = 0
    level: list[Any] = [fields]
    while level:
        depth += 1
        if depth > DATA_DEPTH_LIMIT and any(isinstance(item, dict | list) for item in level):
            return f"nested deeper than {DATA_DEPTH_LIMIT} levels"
        inner: list[Any] = []
        for item in level:
            if isinstance(item, str):
                continue
            if isinstance(item, dict):
                inner.extend(item.values())
            elif isinstance(item, list):
                inner.extend(item)
            elif isinstance(item, int) and not -(1 << 63) <= item < 1 << 64:
                return "holds an integer of more than 64 bits"
        level = inner
    return None
