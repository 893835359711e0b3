"""The log of one worker: every port on one group membership."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack

from msgspec import Struct

from waypost.domain.notification import Lane
from waypost.ports.clock import Clock
from waypost.ports.holds import Holds
from waypost.ports.ledger import Ledger
from waypost.ports.peers import Peers
from waypost.ports.views import Views
from waypost.ports.work import Work
from waypost.stores.kafka.accepting import Accepting
from waypost.stores.kafka.assignment import Assignment
from waypost.stores.kafka.consumer import GroupConsumer
from waypost.stores.kafka.producer import Acknowledging
from waypost.stores.kafka.recording import KafkaRecords
from waypost.stores.kafka.rereading import Rereading
from waypost.stores.kafka.settings import KafkaSettings
from waypost.stores.kafka.settlement_writer import SettlementWriter
from waypost.stores.kafka.topics import TopicNames, prepare
from waypost.stores.kafka.transactions import Transactions
from waypost.stores.kafka.unrecorded import Unrecorded
from waypost.stores.kafka.views import LogViews
from waypost.stores.kafka.withdrawals import WithdrawalTable
from waypost.stores.kafka.work import LogWork, Stored
from waypost.telemetry import Telemetry

SCRIBES = 2
"""The transactional ids of a worker: while one transaction is under way the next is made."""


class LedgerStore(Struct, frozen=True):
    """The store behind a log: its ledger, and the data whose truth is there."""

    work: Work
    ledger: Ledger
    views: Views
    holds: Holds
    shares_recording: bool = False
    """Whether several processes may write the ledger at once."""
    records_claims: bool = False
    """Whether the holds are elsewhere: the keys are written into the store as well."""


class Log:
    """The open log and the adapters on it."""

    def __init__(
        self,
        settings: KafkaSettings,
        behind: LedgerStore,
        *,
        peers: Peers,
        clock: Clock,
        telemetry: Telemetry,
        delivers: bool,
    ) -> None:
        """Create the log; without *delivers* it accepts and records, and has no partitions of the work."""
        topics = TopicNames(settings)
        self._delivers = delivers
        self._clock = clock
        self._stall_s = settings.stall_s
        self._producer = Acknowledging(settings)
        self._accepting = Accepting(
            self._producer,
            topics,
            behind.holds,
            behind.views,
            telemetry,
            may_open=settings.dedup_away == "open",
            records_claims=behind.records_claims,
        )
        self._rereading = Rereading(settings)
        self._assignment = Assignment(topics, telemetry, self._rereading)
        self._consumer = self._assignment.consumer = GroupConsumer(
            settings, topics.work, self._assignment, self._is_stalled
        )
        gather_s = settings.settle_ms / 1_000
        self._scribes = [
            SettlementWriter(Transactions(settings, self._consumer.group), topics, clock, gather_s)
            for _ in range(SCRIBES)
        ]
        for settlement_writer in self._scribes:
            settlement_writer.on_moved = self._assignment.moved
            settlement_writer.on_failed = self._assignment.failed
        self._withdrawn = WithdrawalTable(settings, topics.withdrawals, self._producer)
        unrecorded = Unrecorded(behind.ledger, clock)
        stored = Stored(behind.work, behind.ledger, unrecorded)
        self.work = LogWork(self._accepting, self._assignment, self._scribes, self._withdrawn, stored, clock)
        self._withdrawn.on_news = self.work.withdrawals_came
        self.views = LogViews(behind.views, unrecorded, self._accepting.recent, peers)
        self.records = KafkaRecords(
            settings, topics, behind.ledger, telemetry, clock, is_shared=behind.shares_recording
        )
        self._open = AsyncExitStack()

    @property
    def fault(self) -> str | None:
        """The reason why the log takes no settlements, None while it does."""
        return "log_away" if any(settlement_writer.is_away for settlement_writer in self._scribes) else None

    def on_arrival(self, tell: Callable[[Lane], None]) -> None:
        """Call *tell* with each lane that work came for."""
        self._assignment.on_arrival = tell

    async def start(self) -> None:
        """Join the workers; Unavailable where the cluster cannot be reached."""
        self._open.push_async_callback(self._producer.stop)
        self._open.push_async_callback(self._withdrawn.stop)
        settlement_writers = self._scribes if self._delivers else []
        for settlement_writer in settlement_writers:
            self._open.push_async_callback(settlement_writer.stop)
        starting = self._withdrawn.start(), *(settlement_writer.start() for settlement_writer in settlement_writers)
        for failed in await asyncio.gather(*starting, return_exceptions=True):
            if failed is not None:
                raise failed
        if self._delivers:
            self._join()
        self._open.push_async_callback(self.records.stop)

    def _join(self) -> None:
        self._open.push_async_callback(self._rereading.stop)
        self._open.push_async_callback(self._assignment.stop)
        self._open.push_async_callback(self._consumer.stop)
        self._open.push_async_callback(self.work.stop)
        self._consumer.start()

    async def stop(self) -> None:
        """Settle what can be settled, leave the group and close all connections."""
        await self._open.aclose()

    def _is_stalled(self) -> bool:
        """Tell whether settlements have made no progress for too long; asked in the consumer's thread."""
        waiting = [since for each in self._scribes if (since := each.waiting_since_s) is not None]
        return bool(waiting) and self._clock.monotonic() - min(waiting) > self._stall_s


async def open_log(
    settings: KafkaSettings,
    behind: LedgerStore,
    *,
    peers: Peers,
    clock: Clock,
    telemetry: Telemetry,
    delivers: bool = True,
) -> Log:
    """See that the topics are there and safe, and join; ConfigurationError, Unavailable."""
    await asyncio.to_thread(prepare, settings, TopicNames(settings))
    log = Log(settings, behind, peers=peers, clock=clock, telemetry=telemetry, delivers=delivers)
    try:
        await log.start()
    except BaseException:
        await log.stop()
        raise
    return log
