"""The members that share the work, on whatever machine: each is a row that it renews, with shards and roles.

    member      one row a process, with the time until which it counts as alive, on the server's clock
    ownership   one row a shard or a role, with its member; free where that is NULL

A row that is over is deleted by whoever looks for free shards, and with it everything that it owned becomes free: a
process is alive or dead as a whole, and the server's clock alone says which, unless the supervisor of both saw it end.
What a process settles locks its own row, so that it writes nothing of what is another's by then; without renewals it
stops a margin before. A renewal settles what a lost answer has left open: of what the process knows nothing it lets go.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import time
from collections.abc import Awaitable, Callable, Collection, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

from psycopg.errors import ForeignKeyViolation

from waypost.domain.errors import Unavailable
from waypost.domain.ids import SHARDS
from waypost.stores.sql.driver import Connection
from waypost.stores.sql.faults import StoreFault, refusal
from waypost.stores.sql.postgres.connection import Numbers, PostgresConnection, connect, fault_of
from waypost.stores.sql.postgres.member_rows import (
    ENDED,
    FENCE,
    JOIN,
    LEASE_S,
    LEAVE,
    LET_GO,
    OVER,
    OWNED,
    RENEW,
    SHARERS,
    TAKE,
    TAKE_ROLE,
    TAKE_THESE,
    place,
)
from waypost.stores.sql.units import critical_of

RENEW_S = 2.0
MARGIN_S = 2.0
"""Seconds before its lease ends at which it stops."""
ROLE_PATIENCE_S = 1.0
"""Seconds between two questions for a role that another process has."""

T = TypeVar("T")


class Membership:
    """The row, shards and roles of this process (fulfils engine.Locks)."""

    splits = False

    def __init__(self, url: str, report: Callable[[StoreFault], None]) -> None:
        self._url = url
        self._report = report
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="waypost-member")
        self._connection: PostgresConnection | None = None
        self._id: int | None = None
        self._mark = secrets.randbits(62)
        """The mark that tells its row from one with the same number on a server that knew nothing of it yet."""
        self._ended: set[int] = set()
        """The processes of this place that are over, whose rows are still to be deleted."""
        self._burying: asyncio.Future[None] | None = None
        self._shards: frozenset[int] = frozenset()
        self._borrowed: frozenset[int] = frozenset()
        self._roles: dict[str, float] = {}
        """The roles that are held, under infinity; of the others when they were asked for."""
        self._version = 0
        self._valid_until_s = 0.0
        self._unbroken_since_s = 0.0
        self._sharers = 1
        self._shares = False
        self._joining = asyncio.Lock()
        self._changing = asyncio.Lock()
        """What the server has been told of shards is known here too, unless its answer was lost."""
        self._renewing: asyncio.Task[None] | None = None
        self.on_close: Callable[[], Awaitable[None]] | None = None

    @property
    def owned(self) -> frozenset[int]:
        """See Locks; nothing a margin before the lease ends."""
        return self._shards if _now_s() < self._valid_until_s else frozenset()

    @property
    def critical(self) -> frozenset[int]:
        """See Locks: a shard is owned whole."""
        return self.owned

    @property
    def version(self) -> int:
        """See Locks; another one while the lease is over."""
        return 2 * self._version + (_now_s() < self._valid_until_s)

    def member(self) -> int | None:
        """Return the number of its row; None before it is one of them, and a margin before its lease ends."""
        return self._id if _now_s() < self._valid_until_s else None

    def sharers(self) -> int:
        """See Locks."""
        return self._sharers

    def fence(self, connection: Connection) -> frozenset[int]:
        """Return the shards that are this process's until the transaction of *connection* ends."""
        if self._id is None or connection.execute(FENCE, (self._id, self._mark)).fetchone() is None:
            return frozenset()
        return frozenset(row[0] for row in connection.execute(OWNED, (self._id,)).fetchall())

    def ended(self, said: bytes) -> None:
        """Free what a process of this place owned: its supervisor saw it end, and gives its number."""
        self._ended.add(int(said))
        if self._id is not None:
            self._burying = asyncio.ensure_future(self._bury_ended())

    async def _bury_ended(self) -> None:
        def bury(connection: PostgresConnection) -> int:
            self._bury(connection)
            sharers: int = connection.execute(SHARERS).fetchone()[0]
            return sharers

        with contextlib.suppress(Unavailable):  # whoever looks for free shards next does it
            self._sharers = await self._run(bury)

    async def attend(self) -> None:
        """See Locks."""
        await self._join()

    async def acquire(self, wanted: int = SHARDS) -> list[int]:
        """See Locks."""
        self._shares = True
        async with self._changing:
            await self._join()
            found = await self._run_as_member(partial(self._take_free, wanted - len(self._shards)))
            if found:
                self._shards |= frozenset(found)
                self._version += 1
            return found

    async def release(self, shards: Iterable[int]) -> None:
        """See Locks."""
        gone = frozenset(shards)
        if gone:
            self._shards -= gone
            self._version += 1
            await self._let_go(gone)

    async def borrow(self, units: Iterable[int]) -> Borrowed:
        """See Locks; each by its whole shard."""
        wanted = sorted({unit % SHARDS for unit in units} - self._shards)
        if not wanted:
            return Borrowed(self, frozenset())

        def take(connection: PostgresConnection) -> frozenset[int]:
            self._bury(connection)
            rows = connection.execute(TAKE_THESE, (self._id, Numbers(wanted))).fetchall()
            return frozenset(row[0] for row in rows)

        async with self._changing:
            await self._join()
            borrowed = await self._run_as_member(take)
            self._borrowed |= borrowed
        return Borrowed(self, borrowed)

    async def acquire_critical(self, shards: Iterable[int]) -> list[int]:
        """See Locks: it comes with the shard."""
        return []

    async def release_critical(self, shards: Collection[int]) -> None:
        """See Locks: it goes with the shard."""

    async def give_back(self, shards: frozenset[int]) -> None:
        """Release what was borrowed."""
        if shards:
            self._borrowed -= shards
            await self._let_go(shards)

    async def take_role(self, name: str) -> bool:
        """See Locks."""
        asked_s = self._roles.get(name, 0.0)
        if asked_s == _HELD:
            return _now_s() < self._valid_until_s
        if _now_s() - asked_s < ROLE_PATIENCE_S:
            return False
        await self._join()
        self._roles[name] = _now_s()
        member = self._id

        def take(connection: PostgresConnection) -> bool:
            return connection.execute(TAKE_ROLE, (f"role-{name}", member)).fetchone() is not None

        is_taken = await self._run_as_member(take) and member == self._id  # what a member had goes with it
        if is_taken:
            self._roles[name] = _HELD
        return is_taken

    async def leave(self) -> None:
        """See Locks; its row says so at once."""
        self._shares = False
        async with self._changing:
            await self._renew()

    async def close(self) -> None:
        """See Locks."""
        if self._renewing is not None:
            self._renewing.cancel()
            await asyncio.gather(self._renewing, *filter(None, [self._burying]), return_exceptions=True)
        if self.on_close is not None:
            await self.on_close()
        if self._id is not None:
            with contextlib.suppress(Unavailable):  # the row ends by itself
                await self._run(lambda connection: connection.execute(LEAVE, (self._id,)))
        self._id, self._shards, self._valid_until_s = None, frozenset(), 0.0
        await asyncio.to_thread(self._thread.shutdown)
        if self._connection is not None:
            self._connection.close()

    async def _let_go(self, shards: frozenset[int]) -> None:
        """Let others have *shards* now; where the server is away, with the next renewal."""
        async with self._changing:
            await self._run(lambda connection: connection.execute(LET_GO, (self._id, Numbers(shards))))

    def _take_free(self, wanted: int, connection: PostgresConnection) -> list[int]:
        self._bury(connection)
        if wanted <= 0:
            return []
        start = os.getpid() * 7 % SHARDS  # processes that start together do not all want the same
        return [row[0] for row in connection.execute(TAKE, (self._id, start, wanted)).fetchall()]

    def _bury(self, connection: PostgresConnection) -> None:
        """Delete members that are gone. After an outage of the server everybody has a lease's time to be heard of
        first.
        """
        if _now_s() - self._unbroken_since_s > LEASE_S:
            connection.execute(OVER)
        ended = list(self._ended)
        if ended:
            connection.execute(ENDED, (place(), Numbers(ended)))
            self._ended.difference_update(ended)

    async def _join(self) -> None:
        """Join the members, now or still."""
        if self._renewing is None:
            self._renewing = asyncio.create_task(self._renew_for_ever())
        async with self._joining:
            if self._id is None:
                await self._join_now()

    async def _join_now(self) -> None:
        asked_s = _now_s()
        me = (place(), os.getpid(), self._mark, self._shares)

        def join(connection: PostgresConnection) -> tuple[int, int]:
            member = connection.execute(JOIN, me).fetchone()[0]
            return member, connection.execute(SHARERS).fetchone()[0]

        self._id, self._sharers = await self._run(join)
        self._unbroken_since_s = asked_s
        self._valid_until_s = asked_s + LEASE_S - MARGIN_S

    async def _renew_for_ever(self) -> None:
        while True:
            await asyncio.sleep(RENEW_S)
            with contextlib.suppress(Unavailable):  # it was reported; the next time tries again
                async with self._changing:
                    await self._renew()

    async def _renew(self) -> None:
        member, asked_s = self._id, _now_s()
        if member is None:
            return

        def renew(connection: PostgresConnection) -> tuple[bool, frozenset[int], int]:
            still = connection.execute(RENEW, (self._shares, member, self._mark)).rowcount > 0
            owned = frozenset(row[0] for row in connection.execute(OWNED, (member,)).fetchall())
            unknown = owned - self._shards - self._borrowed
            if unknown:
                connection.execute(LET_GO, (member, Numbers(unknown)))
            return still, owned, connection.execute(SHARERS).fetchone()[0]

        still, owned, sharers = await self._run(renew)
        if self._valid_until_s < asked_s:
            self._unbroken_since_s = asked_s
        self._sharers = sharers
        if self._shards - owned:
            self._shards &= owned
            self._version += 1
        if still:
            self._valid_until_s = asked_s + LEASE_S - MARGIN_S
        else:
            self._forget()
            await self._join()

    def _forget(self) -> None:
        """Forget the own row, which others deleted, and with it all that it owned."""
        self._id, self._shards, self._borrowed = None, frozenset(), frozenset()
        self._version += 1
        self._roles.clear()

    async def _run_as_member(self, act: Callable[[PostgresConnection], T]) -> T:
        """Run what needs its row; Unavailable where others have deleted that, and the next time it is a member anew."""
        member = self._id
        try:
            return await self._run(act)
        except ForeignKeyViolation as buried:
            if member == self._id:
                self._forget()
            raise refusal(StoreFault.BUSY) from buried

    async def _run(self, act: Callable[[PostgresConnection], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._act, act)

    def _act(self, act: Callable[[PostgresConnection], T]) -> T:
        try:
            return act(self._connected())
        except Exception as error:
            fault = fault_of(error)
            if fault is StoreFault.OPERATION:
                raise
            if fault is StoreFault.LOST:
                self._look_for_server()
            raise refusal(fault) from error

    def _connected(self) -> PostgresConnection:
        if self._connection is None or self._connection.raw.closed:
            self._connection = connect(self._url)
        return self._connection

    def _look_for_server(self) -> None:
        """Report that the server is away, unless this connection alone was lost, as to a server that was replaced."""
        if self._connection is not None:
            self._connection.close()
        try:
            self._connected()
        except Exception as error:  # noqa: BLE001 - whatever is wrong with it, the act has failed already
            self._report(fault_of(error))


class Borrowed:
    """The shards without an owner that are held while something is decided about them (fulfils engine.Borrowed)."""

    def __init__(self, membership: Membership, shards: frozenset[int]) -> None:
        self._membership = membership
        self.shards = shards
        self.units = shards | critical_of(shards)

    async def give_back(self) -> None:
        """Release the shards."""
        await self._membership.give_back(self.shards)


_HELD = float("inf")


def _now_s() -> float:
    """Read a clock that goes on while the machine sleeps, in seconds."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)
