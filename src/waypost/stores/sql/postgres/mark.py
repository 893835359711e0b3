"""What a server has committed, by its snapshot: the same transactions can be seen, or others.

member    the transactions that renewed its rows: each process renews its own every other second, and that is no news
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from waypost.stores.sql.driver import Connection
from waypost.stores.sql.postgres.tail import TransactionSnapshot

_READ: Final = "SELECT CAST(pg_current_snapshot() AS text), (SELECT string_agg(CAST(xmin AS text), ' ') FROM member)"
_MOST: Final = 64
"""Transactions between two looks above which it is not asked what they were."""
_ROUND: Final = 1 << 32
"""Rows name their transactions by the last 32 bits."""


class ServerMark(Struct, frozen=True):
    """The transactions that can be seen at one time (fulfils engine.Mark)."""

    seen: TransactionSnapshot
    renewals: frozenset[int]
    """The transactions that wrote the rows of members, and nothing else."""

    def has_news(self, before: ServerMark) -> bool:
        """See Mark."""
        if self.seen == before.seen:
            return False
        if not before.seen.end <= self.seen.end <= before.seen.end + _MOST:
            return True
        over = {*before.seen.open, *range(before.seen.end, self.seen.end)}.difference(self.seen.open)
        return any(number % _ROUND not in self.renewals for number in over)


def mark_of(connection: Connection) -> ServerMark:
    """Read what can be seen now."""
    snapshot, renewals = connection.execute(_READ).fetchone()
    return ServerMark(TransactionSnapshot.of(snapshot), frozenset(map(int, (renewals or "").split())))
