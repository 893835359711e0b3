"""The engine as both databases have it: one writer, the locks of owners, the tail of fresh work."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol

from msgspec import Struct

from waypost.domain.ids import AppId, NotificationId
from waypost.domain.notification import Lane
from waypost.domain.time import Instant
from waypost.ports.peers import Peers
from waypost.ports.work import NewNotification, WorkItem
from waypost.stores.sql.added import AddedTable
from waypost.stores.sql.checkup import Checkup
from waypost.stores.sql.driver import Connection
from waypost.stores.sql.faults import StoreFault
from waypost.stores.sql.units import Leasing, critical_of


class Months(Struct, frozen=True):
    """The tables by month that are not as they should be."""

    missing: tuple[str, ...] = ()
    """The tables missing of this month, or those ahead: their rows go with all others that have no table."""
    undropped: tuple[str, ...] = ()
    """The tables that are over, with nothing to keep, and in somebody's use."""


class Busy(Exception):
    """The error that somebody else held the store for too long."""


class InDoubt(Exception):
    """The error that the connection was lost in COMMIT; ask for *batch* when the store is back."""

    def __init__(self, batch: int) -> None:
        super().__init__("the connection was lost while it committed")
        self.batch = batch


class Overtaken(Exception):
    """The error that another transaction was first: decide anew, seeing what it wrote."""


class Writer(Protocol):
    """The connection that writes, in one thread."""

    @property
    def connection(self) -> Connection:
        """The connection it writes through."""
        ...

    def turn(self, patience_s: float, *, urgent: Callable[[], bool] | None = None) -> AbstractContextManager[None]:
        """Take the right to write one transaction; Busy after *patience_s*, or what the engine raises.

        Where processes wait for each other, who is *urgent*, or becomes so while it waits, goes before the others.
        """
        ...

    def is_hurried(self) -> bool:
        """Tell whether another was urgent just now, so that transactions are to be short."""
        ...

    def begin(self, *, durable: bool, ordered: bool, pipelined: bool = False) -> None:
        """Begin a transaction: *ordered* ones one at a time in the store, *pipelined* ones in few round trips."""
        ...

    def commit(self) -> None:
        """Commit; InDoubt where nobody can say whether it was."""
        ...

    def rollback(self) -> None:
        """Undo what was begun, if anything; it raises nothing."""
        ...

    def was_committed(self, batch: int) -> bool:
        """Tell what became of the last transaction, which was in doubt; Busy or what the engine raises until then."""
        ...

    def is_well(self) -> bool:
        """Tell whether new work may be taken: there is room, and the store answers."""
        ...

    def use_reserve(self) -> None:
        """Free what was reserved for a full disk."""
        ...

    def fault_of(self, error: BaseException) -> StoreFault:
        """Tell what *error* says about the store."""
        ...

    def close(self) -> None:
        """Close the connection."""
        ...


class Borrowed(Protocol):
    """The units without an owner that are held while something is decided about them."""

    @property
    def units(self) -> frozenset[int]:
        """The units that could be had."""
        ...

    async def give_back(self) -> None:
        """Release them."""
        ...


class Locks(Protocol):
    """The shards and roles of one process."""

    @property
    def owned(self) -> frozenset[int]:
        """The shards that are this process's."""
        ...

    @property
    def critical(self) -> frozenset[int]:
        """The shards whose critical lane is this process's: those it owns, where that lane is not owned apart."""
        ...

    @property
    def splits(self) -> bool:
        """Whether a shard's critical lane is owned apart from the others."""
        ...

    @property
    def version(self) -> int:
        """The version of ``owned`` and ``critical``: it changes whenever one of them does."""
        ...

    async def attend(self) -> None:
        """Join the others and know of them, without a share."""
        ...

    async def acquire(self, wanted: int = ...) -> Sequence[int]:
        """Take free shards until *wanted* are owned; return those taken now."""
        ...

    async def release(self, shards: Iterable[int]) -> None:
        """Let other processes have *shards*; nothing of them may be held any more."""
        ...

    async def acquire_critical(self, shards: Iterable[int]) -> Sequence[int]:
        """Take the critical lane of those of *shards* where it is free; return those taken now."""
        ...

    async def release_critical(self, shards: Collection[int]) -> None:
        """Let other processes have the critical lane of *shards*; nothing of it may be held any more."""
        ...

    async def borrow(self, units: Iterable[int]) -> Borrowed:
        """Take those of *units* (units.py) that nobody owns, for a moment."""
        ...

    async def take_role(self, name: str) -> bool:
        """Own what exists once for all processes of a store (sweep, report), now or still."""
        ...

    def sharers(self) -> int | None:
        """Count the processes that share the work, on any machine; None where only those of this one do."""
        ...

    async def leave(self) -> None:
        """Leave the ``sharers``; what is owned stays so until it is released."""
        ...

    async def close(self) -> None:
        """Release and close everything."""
        ...


def owned_units(locks: Locks) -> frozenset[int]:
    """Return the units (units.py) of a process."""
    return locks.owned | critical_of(locks.critical)


Fence = Callable[[Connection], frozenset[int] | None]
"""The shards that the process still owns in this very transaction; None where that cannot change behind its back."""


class Joined(NamedTuple):
    """The place of a process among those who share the work."""

    locks: Locks
    peers: Peers | None
    """The other workers, on whatever machine."""
    fence: Fence
    member: Callable[[], int | None] = lambda: None
    """The number that the others know it by, for as long as it may act; None where there are no numbers."""


class Tail(Protocol):
    """The position of a process in the fresh work of its shards."""

    def note(self, connection: Connection, arrivals: Sequence[NewNotification], numbers: Sequence[int], /) -> None:
        """Write, in a transaction that accepts, what the tails of other processes need to find these."""
        ...

    def start_over(self, leasing: Leasing, /) -> None:
        """Begin at the first open row, with these shards."""
        ...

    def apps(self, connection: Connection, lane: Lane, /) -> set[AppId]:
        """Return the apps that may have fresh rows of *lane* that were not read yet."""
        ...

    def read(
        self, connection: Connection, lane: Lane, app: AppId, n: int, is_taken: Callable[[NotificationId], bool], /
    ) -> list[tuple[WorkItem, int]]:
        """Read at most *n* of those rows with their shards, passing over what is taken."""
        ...

    def depth(self, connection: Connection, lane: Lane, most: int, /) -> int:
        """Count the fresh rows, leased or not, up to *most*."""
        ...

    def place(self, connection: Connection, /) -> str:
        """Write down where it stands, for a process that starts; only where a read is a round trip."""
        ...

    def oldest(self, connection: Connection, /) -> dict[tuple[Lane, AppId], Instant]:
        """Find when the oldest fresh row of each lane and app was accepted, among those heard of until now."""
        ...


class Mark(Protocol):
    """The state of a database at one time: what was committed by then."""

    def has_news(self, before: Any, /) -> bool:
        """Tell whether more is committed now than there was at *before*, a mark of the same engine."""
        ...


class Engine(Protocol):
    """A database, and how it is opened."""

    @property
    def is_remote(self) -> bool:
        """Whether a read is a round trip: not for the event loop."""
        ...

    def refuse_workers(self, workers: int) -> None:
        """Refuse more processes than can use it without damage; ConfigurationError."""
        ...

    def look(self) -> str:
        """Find out whether it could be prepared, and name it with its version; nothing is written. Blocking.

        ConfigurationError, StorageBroken or Unavailable where it could not.
        """
        ...

    def check_up(self, tables: Sequence[AddedTable] = ()) -> Checkup | None:
        """Look closely, also for *tables*, and change nothing; None where there is no database yet.

        Errors as of ``look``; blocking.
        """
        ...

    def prepare(self, now: Instant, tables: Sequence[AddedTable] = ()) -> tuple[str | None, str]:
        """Bring it to today's schema, with *tables*; return the revisions before and after. Blocking."""
        ...

    def keep_up(self, now: Instant, before: Instant) -> Months:
        """Make what will be needed later; drop what can be dropped whole and is over *before*. Blocking."""
        ...

    def by_pages(self, before: Instant) -> Instant:
        """Return the instant before which rows go by pages, of what is over *before* and did not go whole."""
        ...

    def open_writer(self) -> Writer:
        """Open the connection that writes."""
        ...

    def open_reader(self) -> Connection:
        """Open a connection that reads, for one thread at a time."""
        ...

    def tail(self) -> Tail:
        """Build what finds fresh work for a process."""
        ...

    def mark(self, connection: Connection) -> Mark:
        """Read what is committed by now, through a connection that writes nothing."""
        ...

    def fault_of(self, error: BaseException) -> StoreFault:
        """Tell what *error* of a reader says about the store."""
        ...

    async def join(self, peers: Peers | None, report: Callable[[StoreFault], None]) -> Joined:
        """Join those who share the work; *report* is called when the store does not answer."""
        ...
