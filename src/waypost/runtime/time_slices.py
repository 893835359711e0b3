"""Work cut into slices, so that whoever waits has a turn between two of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")


def slices(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """Yield *items* in order, *size* at a time."""
    return (items[start : start + size] for start in range(0, len(items), size))
