"""Looking for what no index has: so many at a time, and how far it came."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Final, Generic, TypeVar

from msgspec import Struct

T = TypeVar("T")
K = TypeVar("K")
SHOWN: Final = 50
"""What a page shows."""
_PAGE: Final = 500
_PAGES: Final = 4
"""How many pages of the store are looked through for one page of what is wanted."""


class Looked(Struct, Generic[T, K], frozen=True):
    """A page of what was found."""

    items: Sequence[T]
    onward: K | None
    """The key of the last that was looked at, below which the next page begins; None at the end."""
    is_cut: bool = False
    """Whether enough was looked at before the page was full."""


async def look(
    read: Callable[[K | None, int], Awaitable[Sequence[T]]],
    key_of: Callable[[T], K],
    before: K | None,
    is_wanted: Callable[[T], bool] | None = None,
    is_over: Callable[[T], bool] = lambda _: False,
) -> Looked[T, K]:
    """Read pages below *before* until there is one of what is wanted, all is over, or enough was looked at.

    Without *is_wanted* everything is.
    """
    items: list[T] = []
    n = SHOWN if is_wanted is None else _PAGE
    for _ in range(_PAGES):
        page = await read(before, n)
        for item in page:
            if is_over(item):
                return Looked(items, None)
            before = key_of(item)
            if is_wanted is None or is_wanted(item):
                items.append(item)
            if len(items) == SHOWN:
                return Looked(items, before)
        if len(page) < n:
            return Looked(items, None)
    return Looked(items, before, is_cut=True)
