"""Relaying: entries of the outbox are published to topics that others read; woken by commits, and now and then."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence

from waypost.domain.errors import Unavailable
from waypost.domain.time import SECOND_MS, later
from waypost.ports.clock import Clock
from waypost.stores.sql.database import Database
from waypost.stores.sql.outbox.floor import Floor
from waypost.stores.sql.outbox.relay import CLAIM, DROP, MARK, UNCLAIM, Claim, Claimed, Over
from waypost.stores.sql.outbox.resting import Resting
from waypost.stores.sql.outbox.topics import Topics
from waypost.stores.sql.settings import OutboxSettings
from waypost.stores.sql.store import Store
from waypost.telemetry import Event

_TOPIC = "outbox"
_DROPPED = 5_000
"""The most published entries that are dropped in one transaction."""


class Relay:
    """The publisher of what stands in the outbox; several processes may do so at once."""

    def __init__(self, store: Store, topics: Topics, settings: OutboxSettings, clock: Clock) -> None:
        self._database: Database = store.database
        self._member = store.member
        self._peers = store.peers
        self._topics = topics
        self._settings = settings
        self._clock = clock
        self._woken = asyncio.Event()
        self._resting = Resting(store.database.telemetry)
        self._floor = Floor(clock)
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Begin to publish, also what others have written who do not."""
        if self._peers is not None:
            self._peers.on(_TOPIC, lambda _: self._woken.set())
        self._tasks = [asyncio.create_task(self._relay_for_ever()), asyncio.create_task(self._tidy_for_ever())]

    async def stop(self) -> None:
        """Stop publishing; others do, or whoever starts next."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @property
    def tells_of_waiting(self) -> bool:
        """Whether what waits for its time has entries, too."""
        return self._topics.by_channel

    def wake(self) -> None:
        """Wake the relay: there is something in the outbox."""
        self._woken.set()
        if not self._tasks and self._peers is not None:
            self._peers.tell(_TOPIC)

    async def relay(self) -> int:
        """Publish a batch; return how many entries it was. Unavailable: nothing of it counts as published."""
        member = self._member()
        if member is None:
            return 0
        submit = self._database.commits.submit
        wanted = Claim(member, self._settings.batch, self._floor.at, self._topics.by_channel)
        claimed = await asyncio.shield(submit(CLAIM, wanted, self._settings.batch))
        seqs = [each.seq for each in claimed]
        self._floor.saw(max(seqs, default=0))
        if len(claimed) < self._settings.batch:
            self._floor.is_through()
        if not claimed:
            return 0
        try:
            await self._publish(claimed)
        except BaseException as error:
            if isinstance(error, Unavailable):
                self._resting.failed(str(error))
            self._floor.back_to(seqs[0])
            with contextlib.suppress(Unavailable):
                submit(UNCLAIM, seqs, len(seqs)).add_done_callback(lambda done: done.cancelled() or done.exception())
            raise
        self._resting.succeeded()
        await asyncio.shield(submit(MARK, seqs, len(seqs)))
        return len(claimed)

    async def _publish(self, claimed: Sequence[Claimed]) -> None:
        await self._topics.publish(claimed)

    async def _relay_for_ever(self) -> None:
        pause_s = self._settings.poll_s
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause_s):
                    await self._woken.wait()
            self._woken.clear()
            try:
                while await self.relay() == self._settings.batch:
                    pass
            except Unavailable:
                await self._resting.rest(min(1.0, pause_s))
                self._woken.set()
            except Exception as surprise:  # noqa: BLE001 - as in runtime.ticker: it must outlive any fault of one turn
                self._database.telemetry.event(Event.STAGE_FAILED, stage="relay", error=type(surprise).__name__)

    async def _tidy_for_ever(self) -> None:
        while True:
            await asyncio.sleep(self._settings.retention_s / 5)
            try:
                await self.tidy()
            except Unavailable:
                pass
            except Exception as surprise:  # noqa: BLE001 - as above
                self._database.telemetry.event(Event.STAGE_FAILED, stage="relay", error=type(surprise).__name__)

    async def tidy(self) -> int:
        """Drop entries published long ago; return how many it was."""
        before = later(self._clock.now(), -round(self._settings.retention_s * SECOND_MS))
        dropped = page = await asyncio.shield(self._database.commits.submit(DROP, Over(before, _DROPPED), _DROPPED))
        while page == _DROPPED:
            page = await asyncio.shield(self._database.commits.submit(DROP, Over(before, _DROPPED), _DROPPED))
            dropped += page
        return dropped
