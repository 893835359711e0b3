"""The SQL stores under test: each worker is a store of its own on one database, as each process has one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import psycopg

from tests.contract.clock import StoppedClock
from tests.contract.party import Party
from tests.contract.stores import Strikes
from tests.journeys.harness import until
from waypost.bootstrap.features import FEATURES, parts_of, tables
from waypost.bootstrap.features import settings_of as feature_settings
from waypost.config import Config
from waypost.domain.ids import SHARDS, DeviceId
from waypost.features.feature import Feature
from waypost.features.parts import Ground
from waypost.ports.audit import Audit
from waypost.ports.balance import BalanceSheet
from waypost.ports.bulk import Bulk, BulkViews, OptOuts
from waypost.ports.dedup import Dedup
from waypost.ports.devices import Devices
from waypost.ports.erasure import Erasures
from waypost.ports.feed import Feed
from waypost.ports.holds import Holds
from waypost.ports.journal import Journal, JournalRow
from waypost.ports.keys import Keys
from waypost.ports.outbox import OutboxView
from waypost.ports.retention import Retention
from waypost.ports.views import Views
from waypost.ports.work import Work
from waypost.stores.sql.connection import SqliteConnection, database_path
from waypost.stores.sql.driver import Connection
from waypost.stores.sql.journal import SqlJournal
from waypost.stores.sql.outbox_view import SqlOutboxView
from waypost.stores.sql.postgres.connection import PostgresConnection
from waypost.stores.sql.schema import metadata
from waypost.stores.sql.settings import Durability, SqlSettings, is_postgres
from waypost.stores.sql.store import Store, open_store
from waypost.telemetry.sink import Silent, Telemetry

WAITING = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
"""Of this database: tests of others on the same server wait for their own locks."""


def settings_of(url: str) -> SqlSettings:
    """Fast settings: what a test ends is processes, not power."""
    return SqlSettings(url, durability=Durability.PROCESS, reserve_bytes=1 << 16)


def trace(raw: psycopg.Connection[Any], statement: Callable[[str], None]) -> None:
    """Call *statement* before each statement of a connection to PostgreSQL."""

    class Traced(psycopg.RawCursor[Any]):
        def execute(self, query: Any, *arguments: Any, **how: Any) -> Any:
            statement(query if isinstance(query, str) else query.decode())
            return super().execute(query, *arguments, **how)

        def executemany(self, query: Any, *arguments: Any, **how: Any) -> None:
            statement(query if isinstance(query, str) else query.decode())
            super().executemany(query, *arguments, **how)

        def copy(self, query: Any, *arguments: Any, **how: Any) -> Any:  # type: ignore[override]  # passed on
            statement(query.decode())
            return super().copy(query, *arguments, **how)

    raw.cursor_factory = Traced


def _is_whole(connection: Connection) -> bool:
    sql = "SELECT count(*) FROM journal WHERE position >= ?"
    return bool(connection.execute(sql, (connection.whole_before(),)).fetchone()[0] == 0)


class _WholeJournal(SqlJournal):
    """Read when no open transaction hides its newest rows: on PostgreSQL another worker's may."""

    async def read(self, after: int, n: int, naming: Collection[DeviceId] | None = None) -> list[JournalRow]:
        """See Journal."""
        await until(self._is_whole, "the end of all transactions that were open")
        return await super().read(after, n, naming)

    async def _is_whole(self) -> bool:
        return await self._database.read(_is_whole)


class SqlUnderTest:
    """The SQL adapters on the database of a URL."""

    def __init__(self, url: str) -> None:
        self.clock = StoppedClock()
        self.url = url
        self.config = Config(apps={})
        """What features are told of the configuration."""
        self.folders = ExitStack()
        """Folders that are deleted in the end."""
        self.telemetry: Telemetry = Silent()
        """Of the workers that are opened from now on."""
        self._settings = settings_of(url)
        self._party = Party()
        self._front: Store | None = None
        self._workers: dict[int, Store] = {}

    async def open(self) -> None:
        """Open the store that the reads go to."""
        self._front = await open_store(
            self._settings, clock=self.clock, peers=None, telemetry=Silent(), tables=tables()
        )

    @property
    def views(self) -> Views:
        """See StoreUnderTest."""
        return self._opened.views

    @property
    def devices(self) -> Devices:
        """See StoreUnderTest."""
        return self._opened.devices

    @property
    def journal(self) -> Journal:
        """See StoreUnderTest."""
        return _WholeJournal(self._opened.database)

    @property
    def keys(self) -> Keys:
        """See StoreUnderTest."""
        return self._opened.keys

    @property
    def _opened(self) -> Store:
        assert self._front is not None, "opened by the fixture"
        return self._front

    async def open_workers(self, count: int) -> Sequence[Work]:
        """Workers with equal shares of the shards."""
        stores = [
            await open_store(
                self._settings, clock=self.clock, peers=self._party.join(), telemetry=self.telemetry, tables=tables()
            )
            for _ in range(count)
        ]
        for store in stores:
            await store.shards.acquire(SHARDS // count)
            self._workers[id(store.work)] = store
        return [store.work for store in stores]

    async def crash(self, worker: Work) -> None:
        """What a dead process owned is free at once, and nothing else of it is left."""
        store = self._workers.pop(id(worker))
        await store.shards.close()
        await store.database.close()

    def watch_writer(self, worker: Work, statement: Callable[[str], None], answer: Callable[[], None]) -> None:
        """Call *statement* before each statement that a worker's writer makes, *answer* after each COMMIT returned.

        It reaches into the adapter, so that no hook for tests is needed in the product.
        """
        database = self._workers[id(worker)].database
        deliver = database.commits._deliver

        def answering(*measured: Any) -> None:
            answer()
            deliver(*measured)

        connection = database._writer.connection
        if isinstance(connection, SqliteConnection):
            connection.set_trace_callback(statement)
        else:
            assert isinstance(connection, PostgresConnection)
            trace(connection.raw, statement)
        setattr(database.commits, deliver.__name__, answering)

    @property
    def bulk_views(self) -> BulkViews:
        """See StoreUnderTest."""
        return self._opened.bulk_views

    @property
    def feed(self) -> Feed:
        """See StoreUnderTest."""
        return self._opened.feed

    @property
    def audit(self) -> Audit:
        """See StoreUnderTest."""
        return self._opened.audit

    @property
    def balance(self) -> BalanceSheet:
        """See StoreUnderTest."""
        return self._opened.balance

    @property
    def opt_outs(self) -> OptOuts:
        """See StoreUnderTest."""
        return self._opened.opt_outs

    def erasures_of(self, worker: Work) -> Erasures:
        """See StoreUnderTest."""
        return self._workers[id(worker)].erasures

    def strikes_of(self, worker: Work) -> Strikes:
        """See StoreUnderTest."""
        each = [(feature, parts_of(feature).erases) for feature in FEATURES]
        return [partial(erases, self.ground_of(worker, feature)) for feature, erases in each if erases is not None]

    async def cells(self) -> list[tuple[str, Any]]:
        """Every value of every table, those of features too, with the table's name."""
        all_names = dict.fromkeys([*metadata.tables, *(table.name for table in tables())])

        def read(connection: Connection) -> list[tuple[str, Any]]:
            names = [name for name in all_names if name != "history_slice" or connection.dialect.cuts_history]
            rows = [(name, row) for name in names for row in connection.execute(f"SELECT * FROM {name}").fetchall()]  # noqa: S608 - our own tables
            return [(name, value) for name, row in rows for value in row]

        return await self._opened.database.read(read)

    def files(self) -> list[Path]:
        """Every file that it writes: the database, its log, and what processes share; none of a server."""
        if is_postgres(self._settings.url):
            return []
        return [path for path in database_path(self._settings.url).parent.rglob("*") if path.is_file()]

    def ground_of(self, worker: Work, feature: Feature | None = None) -> Ground:
        """What the parts of a feature work with."""
        store = self._workers[id(worker)]
        settings = None if feature is None else feature_settings(self.config, feature)
        return Ground(store, worker, store.devices, self.clock, self.telemetry, self.config, settings)

    def bulk_of(self, worker: Work) -> Bulk:
        """See StoreUnderTest."""
        return self._workers[id(worker)].bulk

    @property
    def holds(self) -> Holds:
        """Keys in two states."""
        return self._opened.holds

    @property
    def dedup(self) -> Dedup:
        """See StoreUnderTest."""
        return self._opened.dedup

    @property
    def retention(self) -> Retention:
        """See StoreUnderTest."""
        return self._opened.retention

    @property
    def outbox(self) -> OutboxView:
        """What operators see."""
        return SqlOutboxView(self._opened.database)

    async def close(self) -> None:
        """See StoreUnderTest."""
        self.folders.close()
        stores = [*self._workers.values(), *([self._front] if self._front else [])]
        await asyncio.gather(*(store.close() for store in stores))
