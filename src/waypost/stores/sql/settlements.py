"""What workers report of leased items: written with what others commit, and their leases ended as it says."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Final

from waypost.domain.ids import NotificationId
from waypost.domain.notification import Guarantee
from waypost.domain.progress import Stale
from waypost.domain.settlement import Intent
from waypost.ports.work import Settled, WorkItem
from waypost.stores.sql.amend import CLOSE, TakeBack
from waypost.stores.sql.bulk_pieces import Pieces
from waypost.stores.sql.bulk_settle import SETTLE_RECIPIENTS
from waypost.stores.sql.database import Database
from waypost.stores.sql.lease_table import LeaseTable
from waypost.stores.sql.promote import DueWork
from waypost.stores.sql.settle import INTEND, SETTLE, SettleResult

NO_LEASE: Final = 0
"""The token of what no worker has leased."""


class Settlements:
    """The settling half of SqlWork; *leasing* gives the shards that are leased from."""

    def __init__(
        self, database: Database, lease_table: LeaseTable, pieces: Pieces, leasing: Callable[[], Collection[int]]
    ) -> None:
        self._database = database
        self._lease_table = lease_table
        self._pieces = pieces
        self._leasing = leasing

    async def settle(self, token: int, settled: Sequence[Settled]) -> list[Stale]:
        """See Work: of what was leased with *token*, recipients of bulk jobs among it."""
        recipients = [one for one in settled if self._pieces.holds(one.notification.id)]
        if recipients:
            stored = [one for one in settled if not self._pieces.holds(one.notification.id)]
            await self.settle_recipients(recipients)
            settled = stored
        return await self._write(token, settled) if settled else []

    async def settle_recipients(self, settled: Sequence[Settled]) -> None:
        """Write the rows of recipients who were leased from pieces; what is given back goes to the front again."""
        written = [one for one in settled if not one.given_back]
        for one in reversed(settled):
            if one.given_back:
                self._pieces.give_back(one.notification.id, self._leasing())
        if written:
            future = self._database.commits.submit(SETTLE_RECIPIENTS, self._pieces.to_write(written), _rows(written))
            future.add_done_callback(partial(self._recipients_written, written))
            await asyncio.shield(future)

    def _recipients_written(self, written: Sequence[Settled], future: asyncio.Future[None]) -> None:
        if not future.cancelled() and future.exception() is None:
            self._pieces.written(one.notification.id for one in written)

    def let_go(self, token: int, items: Sequence[WorkItem]) -> None:
        """Make leasable again what nobody was told of."""
        for item in reversed(items):
            if self._pieces.holds(item.notification.id):
                self._pieces.give_back(item.notification.id, self._leasing())
        self._give_back(token, [Settled(item.notification, given_back=True) for item in items], ())

    async def end(self, due: DueWork) -> None:
        """Close intents past their deadline and what came back withdrawn; nothing leases them meanwhile."""
        closing = [one.notification.id for one in due.intents] + [order.id for order in due.withdrawn]
        for one in closing:
            self._lease_table.block(one)
        try:
            if due.intents:
                await self.settle(NO_LEASE, due.intents)
            await self._close(due.withdrawn)
        finally:
            for one in closing:
                self._lease_table.unblock(one)

    async def _write(self, token: int, settled: Sequence[Settled]) -> list[Stale]:
        stale: list[Stale] = []
        withdrawn = {one.notification.id for one in settled if self._lease_table.is_withdrawn(one.notification)}
        written = [one for one in settled if one.changes or one.targets is not None or one.verdict is not None]
        if len(written) < len(settled):
            self._give_back(token, settled, withdrawn)
        if written:
            kind = INTEND if any(intends(one) for one in written) else SETTLE
            future = self._database.commits.submit(kind, written, _rows(written))
            future.add_done_callback(partial(self._settled, token, written))
            result = await asyncio.shield(future)
            stale = result.stale
            withdrawn |= result.withdrawn
        returned = [one.notification for one in settled if one.given_back]
        await self._close([TakeBack(one.app, one.id, None) for one in returned if one.id in withdrawn])
        return stale

    def _give_back(self, token: int, settled: Sequence[Settled], withdrawn: Collection[NotificationId]) -> None:
        """Release items of which nothing is to be written; each goes to the front, so the first comes last."""
        for one in reversed(settled):
            if not (one.changes or one.targets is not None or one.verdict is not None):
                self._lease_table.settled(token, one, withdrawn=one.notification.id in withdrawn)

    def _settled(self, token: int, written: Sequence[Settled], future: asyncio.Future[SettleResult]) -> None:
        if future.cancelled() or future.exception() is not None:
            return
        result = future.result()
        stale = {(each.notification_id, each.n) for each in result.stale}
        for one in reversed(written):
            refused = (
                {change.n for change in one.changes if (one.notification.id, change.n) in stale} if stale else set()
            )
            self._lease_table.settled(token, one, withdrawn=one.notification.id in result.withdrawn, refused=refused)

    async def _close(self, orders: Sequence[TakeBack]) -> None:
        if orders:
            await asyncio.shield(self._database.commits.submit(CLOSE, orders, len(orders)))


def _rows(settled: Sequence[Settled]) -> int:
    """Count the rows that are written: a notification's, and one for each change."""
    return sum(len(one.changes) + 1 for one in settled)


def intends(settled: Settled) -> bool:
    """Tell whether *settled* goes on record before the bytes leave."""
    notification = settled.notification
    may_intend = notification.guarantee is Guarantee.AT_MOST_ONCE or bool(notification.content.channels)
    return may_intend and any(isinstance(change.settlement, Intent) for change in settled.changes)
