"""The parts that this process has leased, and their comparison with what the store says it has.

    claim   SELECT of what a member has; UPDATE: what it knows nothing of is let go of

A crash of the server, or a failover to a standby that was behind, brings claims back as they were: of a member that
is alive, and settled long since as far as that knows. Nobody else would ever lease them.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from functools import partial

from msgspec import Struct

from waypost.domain.delivery import Target
from waypost.domain.errors import Unavailable
from waypost.domain.ids import NotificationId
from waypost.domain.progress import Stale
from waypost.domain.settlement import Intent
from waypost.ports.work import Settled, WorkItem
from waypost.stores.sql.database import Database
from waypost.stores.sql.outbox.entries import WHOLE
from waypost.stores.sql.rows import execute_in
from waypost.stores.sql.state import StoreState
from waypost.stores.sql.transaction import OperationKind, Transaction
from waypost.telemetry.events import Event

COMPARE_S = 60.0
"""Seconds between comparisons, beside those at each return of the store."""
_HELD = "SELECT seq, notification_id, n FROM claim WHERE holder = ?"
_LET_GO = "UPDATE claim SET holder = NULL, free_at = {now} WHERE holder = {member} AND seq IN ({{keys}})"

Member = Callable[[], int | None]


class HeldPart(Struct, frozen=True):
    """A part that stands as leased."""

    seq: int
    notification_id: NotificationId
    n: int


class Unknown(Struct, frozen=True):
    """The parts that *member* has leased without knowing of it."""

    member: int
    seqs: Sequence[int]


class Held:
    """The parts that this process has leased, by the member that it was then; everything runs on the event loop."""

    def __init__(self) -> None:
        self._parts: dict[tuple[int, NotificationId], set[int]] = {}

    def leased(self, member: int, items: Sequence[WorkItem]) -> None:
        """Note parts that were leased."""
        for item in items:
            parts = self._parts.setdefault((member, item.notification.id), set())
            parts.update((WHOLE,) if item.open_targets is None else (target.n for target in item.open_targets))

    def settled(self, member: int, settled: Sequence[Settled], stale: Sequence[Stale]) -> None:
        """Note parts that were settled or given back, as the store has written it."""
        for one in settled:
            key = (member, one.notification.id)
            if key in self._parts:
                left = _left(self._parts[key], one)
                left.difference_update(each.n for each in stale if each.notification_id == one.notification.id)
                if not left:
                    del self._parts[key]

    def unknown(self, member: int, parts: Sequence[HeldPart]) -> list[int]:
        """Return the numbers of the parts that *member* has leased without knowing of it."""
        return [each.seq for each in parts if each.n not in self._parts.get((member, each.notification_id), ())]


def _can_be_sent(target: Target) -> bool:
    return target.channel is not None and target.suppressed is None and target.waits is None


def _left(parts: set[int], settled: Settled) -> set[int]:
    """Return the parts still under way of *parts*, which is changed in place."""
    if WHOLE in parts and settled.targets is not None:
        parts.remove(WHOLE)
        parts.update(each.n for each in settled.targets if _can_be_sent(each))
    parts.difference_update(change.n for change in settled.changes if not isinstance(change.settlement, Intent))
    if settled.given_back or settled.verdict is not None:
        parts.clear()
    return parts


def _compare(transaction: Transaction, ops: Sequence[int]) -> list[list[HeldPart]]:
    execute = transaction.connection.execute
    return [[HeldPart(*row) for row in execute(_HELD, (member,)).fetchall()] for member in ops]


def _let_go(transaction: Transaction, ops: Sequence[Unknown]) -> list[None]:
    for op in ops:
        execute_in(transaction.connection, _LET_GO.format(now=transaction.now, member=op.member), op.seqs)
    return [None] * len(ops)


COMPARE: OperationKind[int, list[HeldPart]] = OperationKind("compare", _compare, durable=False)
"""By the writer, in whose order leases and settles are answered: what it finds is noted by then, if known at all."""
LET_GO: OperationKind[Unknown, None] = OperationKind("let go", _let_go, durable=False)


class Comparison:
    """A comparison after each return of the store and now and then; *freed* is called when something was let go."""

    def __init__(self, database: Database, member: Member, held: Held, freed: Callable[[], None]) -> None:
        self._database = database
        self._member = member
        self._held = held
        self._freed = freed
        self._returned = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start comparing."""
        self._database.commits.on_state_change(self._store_changed)
        self._task = asyncio.create_task(self._compare_for_ever())

    async def stop(self) -> None:
        """Stop comparing."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def compare(self) -> int:
        """Release what this process does not know that it has; return how many parts it was."""
        member = self._member()
        if member is None:
            return 0
        unknown: list[int] = []
        compared = self._database.commits.submit(COMPARE, member)
        compared.add_done_callback(partial(self._found, member, unknown))
        await asyncio.shield(compared)
        if not unknown:
            return 0
        await asyncio.shield(self._database.commits.submit(LET_GO, Unknown(member, unknown), len(unknown)))
        self._database.telemetry.event(Event.LEASES_LET_GO, count=len(unknown))
        self._freed()
        return len(unknown)

    def _found(self, member: int, unknown: list[int], compared: asyncio.Future[list[HeldPart]]) -> None:
        """Note what was found, in the loop's turn of the answer itself: what is leased after it does not count."""
        if not compared.cancelled() and compared.exception() is None:
            unknown += self._held.unknown(member, compared.result())

    def _store_changed(self, state: StoreState) -> None:
        if state is StoreState.OK:
            self._returned.set()

    async def _compare_for_ever(self) -> None:
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(COMPARE_S):
                    await self._returned.wait()
            self._returned.clear()
            with contextlib.suppress(Unavailable):  # it will return, or the next minute comes
                await self.compare()
