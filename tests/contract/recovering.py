"""A worker on a store with the recovery beside it, and notifications that nobody moves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.contract.bench import APP, RETRY_MS, Bench, again
from tests.contract.sql import SqlUnderTest
from tests.memory.sending_records import MemorySendingRecords
from waypost.config import Config
from waypost.config.settings import AppSettings
from waypost.domain.notification import Notification
from waypost.domain.sending_record import RecordStatus
from waypost.domain.time import DAY_MS, MINUTE_MS
from waypost.features.parts import Ground
from waypost.features.recovery.scanning import scan
from waypost.features.recovery.settings import RecoverySettings
from waypost.ports.recovery import Alert, AlertQuery
from waypost.ports.sending_records import Round
from waypost.stores.sql.transaction import OperationKind, Transaction
from waypost.telemetry.sink import Silent

STUCK_MS, POLL_MS = 5 * MINUTE_MS, MINUTE_MS
NEVER_RETRIES = RecoverySettings(auto_retry=False)


class Place:
    """A worker on a store, and the recovery beside it."""

    def __init__(self, store: SqlUnderTest, bench: Bench, settings: RecoverySettings) -> None:
        self.bench = bench
        self.store = store._workers[id(bench.worker)]
        self.records: MemorySendingRecords | None = None
        self._settings = settings

    @property
    def ground(self) -> Ground:
        """What the feature works with."""
        config, clock = Config(apps={APP: AppSettings()}), self.bench.clock
        store, work = self.store, self.bench.worker
        return Ground(store, work, store.devices, clock, Silent(), config, self._settings, self.records)

    async def scan(self) -> None:
        """One search, a poll after the last."""
        self.bench.clock.advance(POLL_MS)
        await scan(self.ground)

    async def alerts(self) -> list[Alert]:
        """All alerts of the app."""
        return list(await self.store.recovery.alerts(AlertQuery(APP)))

    async def by_hand(self, sql: str, *values: Any) -> None:
        """Change a row in a way that no worker does."""
        await self.store.database.commits.submit(_BY_HAND, (sql, values))


def _by_hand(transaction: Transaction, orders: Sequence[tuple[str, tuple[Any, ...]]]) -> list[None]:
    for order in orders:
        transaction.connection.execute(*order)
    return [None] * len(orders)


_BY_HAND: OperationKind[tuple[str, tuple[Any, ...]], None] = OperationKind("by_hand", _by_hand, durable=False)


async def place(store: SqlUnderTest, settings: RecoverySettings = NEVER_RETRIES) -> Place:
    """A worker that has all shards, and the recovery beside it."""
    (worker,) = await store.open_workers(1)
    return Place(store, Bench(store, worker), settings)


async def stuck_with(here: Place, status: RecordStatus | None, retries: int) -> Notification:
    """A notification whose retry nobody takes, with what the record says of it."""
    here.records = MemorySendingRecords(here.bench.clock, DAY_MS, DAY_MS)
    made = await here.bench.accepted()
    lease, item = await here.bench.take_one()
    await here.bench.settle_first(lease, item, 1, again(0, here.bench.now))
    if status is RecordStatus.PROCESSING:
        await here.records.acquire({made.id: Round(made.expires_at, retries)})
    elif status is not None:
        await here.records.note({made.id: (status, Round(made.expires_at, retries))})
    here.bench.clock.advance(RETRY_MS + STUCK_MS)
    return made


async def alerted(here: Place) -> tuple[Notification, Alert]:
    """A notification with an open alert."""
    made = await stuck_with(here, None, 0)
    await here.scan()
    await here.scan()
    (alert,) = await here.alerts()
    return made, alert
