"""Feeds on PostgreSQL, where several processes write at once: whatever their order, none waits in a circle."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from functools import partial

import pytest

from tests.contract.bench import marking, notification
from tests.contract.sql import SqlUnderTest
from waypost.domain.notification import Notification
from waypost.ports.feed import Mark, MarkedEntry, NewEntry
from waypost.ports.work import NewNotification
from waypost.stores.sql.driver import Connection
from waypost.stores.sql.feed import _Change, _change, _mark
from waypost.stores.sql.postgres.connection import PostgresConnection, connect
from waypost.stores.sql.transaction import Transaction

pytestmark = [pytest.mark.engines, pytest.mark.asyncio]

BLOCKED = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"


class Writer:
    """A process that marks two entries as read in one transaction, and meets another halfway."""

    def __init__(self, url: str, entries: Sequence[Notification]) -> None:
        self._connection: PostgresConnection = connect(url)
        self._entries = entries
        self.is_halfway = threading.Event()
        self.other: Writer
        self.has_ended = False

    def write(self) -> list[list[MarkedEntry]]:
        """Write, after the first entry waiting for the other to have written one too, or to wait for this one."""
        changes = [_Change([(each.app, each.user_id)], partial(self._mark, each)) for each in self._entries]
        self._connection.raw.execute(b"BEGIN")
        try:
            transaction = Transaction(self._connection, self._entries[0].created_at, lambda _: None)
            marked = _change(transaction, changes)
            self._connection.raw.execute(b"COMMIT")
        finally:
            self.has_ended = True
            self._connection.close()
        return [each for each, _ in marked]

    def _mark(self, entry: Notification, connection: Connection) -> list[MarkedEntry]:
        marked = _mark(connection, marking(entry, Mark.READ, entry.created_at))
        if entry is self._entries[0]:
            self.is_halfway.set()
            while not (self.other.is_halfway.wait(0.01) or self.other.has_ended):
                if connection.execute(BLOCKED).fetchone() != (0,):
                    break
        return marked


async def test_two_processes_that_mark_the_same_entries_in_two_orders_do_not_wait_for_each_other(
    emptied_postgres: str,
) -> None:
    store = SqlUnderTest(emptied_postgres)
    await store.open()
    now = store.clock.now()
    made = [notification(now, user=user) for user in ("ann", "bob")]
    (worker,) = await store.open_workers(1)
    await worker.accept([NewNotification(each) for each in made])
    await store.feed.add([NewEntry(each.app, each.user_id, each.id, 0, n, now) for n, each in enumerate(made, 1)])
    writers = [Writer(emptied_postgres, made), Writer(emptied_postgres, made[::-1])]
    writers[0].other, writers[1].other = writers[1], writers[0]
    done = await asyncio.gather(*(asyncio.to_thread(each.write) for each in writers))
    assert sorted(len(marked) for both in done for marked in both) == [0, 0, 1, 1]
    await store.close()
