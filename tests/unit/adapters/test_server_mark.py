"""What a server's snapshots say of what was committed between two looks (PostgreSQL, table 9.82)."""

from __future__ import annotations

import pytest

from waypost.stores.sql.postgres.mark import ServerMark
from waypost.stores.sql.postgres.tail import TransactionSnapshot

ROUND = 1 << 32


def mark(snapshot: str, *renewals: int) -> ServerMark:
    """A look at a time, and the last renewals by then."""
    return ServerMark(TransactionSnapshot.of(snapshot), frozenset(renewals))


@pytest.mark.parametrize(
    ("before", "now", "is_news"),
    [
        (mark("5:5:", 3), mark("5:5:", 3), False),
        (mark("5:5:", 3), mark("6:6:", 3), True),
        (mark("5:5:", 3), mark("6:6:", 5), False),
        (mark("5:5:", 3), mark("7:7:", 5), True),
        (mark("5:5:", 3), mark("7:7:", 5, 6), False),
        (mark("5:5:", 3), mark("5:6:5", 3), False),
        (mark("5:6:5", 3), mark("5:6:5", 3), False),
        (mark("5:6:5", 3), mark("6:6:", 3), True),
        (mark("5:6:5", 3), mark("6:6:", 5), False),
        (mark("5:7:5,6", 3), mark("6:7:6", 5), False),
        (mark("5:7:5,6", 3), mark("5:7:5", 5), True),
        (mark("9:9:", 3), mark("5:5:", 3), True),
        (mark("5:5:", 3), mark("900:900:", *range(5, 900)), True),
        (mark(f"{ROUND + 5}:{ROUND + 5}:"), mark(f"{ROUND + 6}:{ROUND + 6}:", 5), False),
        (mark(f"{ROUND + 5}:{ROUND + 5}:"), mark(f"{ROUND + 6}:{ROUND + 6}:", 6), True),
    ],
    ids=[
        "the same",
        "one more",
        "a renewal",
        "a renewal and one more",
        "two renewals",
        "one has begun",
        "one is open still",
        "one that was open is over",
        "a renewal that was open is over",
        "another one is open still",
        "the other one is over",
        "another server",
        "too many to ask",
        "a renewal, by its last bits",
        "another one, by its last bits",
    ],
)
def test_news_is_what_was_committed_since_and_is_no_renewal(before: ServerMark, now: ServerMark, is_news: bool) -> None:
    assert now.has_news(before) is is_news
