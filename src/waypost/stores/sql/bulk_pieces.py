"""The pieces that this process works on: read from the store, handed out a recipient at a time, written at settle.

Known to the owner of a piece's shard alone, as all that is leased. Everything here but the reading happens on the event
loop, between its steps.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Collection, Iterable, Sequence

from waypost.domain.bulk import FAILURES_LIMIT, BulkJob
from waypost.domain.errors import Unavailable
from waypost.domain.ids import NotificationId, format_id
from waypost.ports.work import Settled, WorkItem
from waypost.stores.sql.bulk_load import PIECE_COLUMNS, PieceRow, Read, read_job, read_piece
from waypost.stores.sql.bulk_settle import PieceSettled
from waypost.stores.sql.database import Database
from waypost.stores.sql.driver import Connection
from waypost.stores.sql.lease import in_shards
from waypost.stores.sql.transaction import OperationKind, Transaction
from waypost.telemetry import Event, Metric

_RUNNING = "SELECT number FROM bulk_job INDEXED BY bulk_job_open WHERE finished_at IS NULL AND state = 'running'"
_NEXT = (
    f"SELECT {PIECE_COLUMNS} FROM bulk_piece INDEXED BY bulk_piece_open"  # noqa: S608 - a list of columns
    " WHERE open = 1 AND job = ? AND seq > ?{shards} ORDER BY seq LIMIT 1"
)
_WAITING = (
    "SELECT CAST(coalesce(sum(expected - written), 0) AS BIGINT) FROM bulk_piece INDEXED BY bulk_piece_open"
    " WHERE open = 1 AND job = ?{shards}"
)
_JOBS_KEPT = 64
_NAMES = "SELECT app, id FROM bulk_job WHERE number = ? AND state = 'running'"
_FAIL = "UPDATE bulk_job SET state = 'failed', failure = ? WHERE number = ?"


class _Piece:
    """A piece in this process's hands."""

    __slots__ = ("due", "held", "row", "variables", "waiting")

    def __init__(self, read: Read) -> None:
        self.row = read.row
        self.due = read.due
        self.variables = read.variables
        self.waiting = deque(read.items)
        self.held: dict[NotificationId, WorkItem] = {}


class Pieces:
    """The loaded pieces, oldest first, and which recipient belongs to which."""

    def __init__(self, database: Database, *, with_devices: bool) -> None:
        self._database = database
        self._with_devices = with_devices
        self._loaded: dict[int, _Piece] = {}
        self._piece_of: dict[NotificationId, _Piece] = {}
        self._loading: set[int] = set()
        self._jobs: dict[int, BulkJob] = {}
        self._failures: Counter[int] = Counter()
        """The number of pieces of each job in a row that could not be read."""
        self._turn = 0
        """The job that was served last."""

    def holds(self, notification_id: NotificationId) -> bool:
        """Tell whether it is a recipient's that is leased here and has no row yet."""
        return notification_id in self._piece_of

    def busy_units(self) -> set[int]:
        """Return the units of pieces of which something is leased: those of no critical lane."""
        return {piece.row.shard for piece in self._loaded.values() if piece.held}

    def keep(self, shards: Collection[int]) -> None:
        """Drop the pieces of other shards: their owner reads what is left of them."""
        for piece in [piece for piece in self._loaded.values() if piece.row.shard not in shards]:
            piece.waiting.clear()
            self._forget_if_done(piece)

    def depth(self, connection: Connection, shards: frozenset[int]) -> int:
        """Count the recipients of running jobs that wait in *shards*."""
        sql = _WAITING.format(shards=in_shards(shards))
        waiting: int = sum(connection.execute(sql, (job,)).fetchone()[0] for job in running_jobs(connection))
        return max(0, waiting - len(self._piece_of))

    def take(self, running: Collection[int], n: int) -> list[WorkItem]:
        """Lease at most *n* recipients of the *running* jobs, from the loaded pieces."""
        items: list[WorkItem] = []
        for piece in list(self._loaded.values()):
            if piece.row.job not in running:  # paused: read again when it goes on; cancelled: never
                piece.waiting.clear()
                self._forget_if_done(piece)
            while piece.waiting and len(items) < n:
                item = piece.waiting.popleft()
                piece.held[item.notification.id] = item
                self._piece_of[item.notification.id] = piece
                items.append(item)
        return items

    async def load(self, shards: frozenset[int]) -> Read | None:
        """Read the next piece of *shards* in a reader thread; None where there is none. ``keep_read`` takes it in.

        One that cannot be read waits for its job's next turn; after three in a row that job is ``failed``.
        """
        while (
            row := await self._database.read_to_lease(lambda connection: self._next(connection, shards))
        ) is not None:
            try:
                read = await self._read(row)
            except Unavailable:
                raise
            except Exception as surprise:  # noqa: BLE001 - whatever is wrong with one must not stop the others
                await self._failed(row.job, type(surprise).__name__)
            else:
                self._failures.pop(row.job, None)
                return read
        return None

    async def _read(self, row: PieceRow) -> Read:
        self._loading.add(row.seq)
        try:
            return await self._database.read_to_route(
                lambda connection: read_piece(
                    connection,
                    self._job(connection, row),
                    row,
                    self._database.clock.now(),
                    with_devices=self._with_devices,
                )
            )
        finally:
            self._loading.discard(row.seq)

    async def _failed(self, job: int, error: str) -> None:
        """Count one more failure of a job, and stop it where that is one too many."""
        self._failures[job] += 1
        if self._failures[job] < FAILURES_LIMIT:
            return
        stopped = await asyncio.shield(self._database.commits.submit(_FAILING, (job, error)))
        del self._failures[job]
        if stopped is not None:
            app, job_id = stopped
            named = format_id(NotificationId(job_id))
            self._database.telemetry.event(Event.BULK_FAILED, app=app, job=named, error=error)
            self._database.telemetry.count(Metric.BULK_FAILED, app=app)

    def keep_read(self, read: Read) -> None:
        """Hand out what was read from now on."""
        self._loaded[read.row.seq] = _Piece(read)

    def _next(self, connection: Connection, shards: frozenset[int]) -> PieceRow | None:
        """Find the oldest open piece of the job whose turn it is."""
        sql = _NEXT.format(shards=in_shards(shards))
        for job in sorted(running_jobs(connection), key=lambda job: (job <= self._turn, job)):
            after = -1
            while (found := connection.execute(sql, (job, after)).fetchone()) is not None:
                after = found[0]
                if after not in self._loaded and after not in self._loading:
                    self._turn = job
                    return PieceRow(*found)
        return None

    def _job(self, connection: Connection, row: PieceRow) -> BulkJob:
        job = self._jobs.get(row.job)
        if job is None:
            if len(self._jobs) >= _JOBS_KEPT:
                self._jobs.clear()
            job = self._jobs[row.job] = read_job(connection, row.job)
        return job

    def to_write(self, settled: Iterable[Settled]) -> list[PieceSettled]:
        """Build what a settle writes of each piece."""
        by_piece: dict[int, list[tuple[Settled, bytes | None]]] = {}
        for one in settled:
            piece = self._piece_of[one.notification.id]
            by_piece.setdefault(piece.row.seq, []).append((one, piece.variables.get(one.notification.id)))
        return [PieceSettled(seq, self._loaded[seq].due, tuple(rows)) for seq, rows in by_piece.items()]

    def give_back(self, notification_id: NotificationId, shards: Collection[int]) -> None:
        """Give back a recipient for whom nothing was done; they are handed out again while the piece is of *shards*."""
        piece = self._piece_of.pop(notification_id)
        item = piece.held.pop(notification_id)
        if piece.row.shard in shards:
            piece.waiting.appendleft(item)
        self._forget_if_done(piece)

    def written(self, ids: Iterable[NotificationId]) -> None:
        """Forget recipients who have their row."""
        for one in ids:
            piece = self._piece_of.pop(one, None)
            if piece is not None:
                del piece.held[one]
                self._forget_if_done(piece)

    def _forget_if_done(self, piece: _Piece) -> None:
        if not piece.held and not piece.waiting:
            self._loaded.pop(piece.row.seq, None)


def _fail(transaction: Transaction, ops: Sequence[tuple[int, str]]) -> list[tuple[str, bytes] | None]:
    return [_fail_one(transaction.connection, *op) for op in ops]


def _fail_one(connection: Connection, job: int, failure: str) -> tuple[str, bytes] | None:
    """Stop a job, and return its app and id; None where it does not run any more."""
    named: tuple[str, bytes] | None = connection.execute(_NAMES, (job,)).fetchone()
    if named is not None:
        connection.execute(_FAIL, (failure, job))
    return named


_FAILING = OperationKind("bulk_fail", _fail, durable=True)


def running_jobs(connection: Connection) -> list[int]:
    """List the numbers of jobs that may be sent."""
    return [row[0] for row in connection.execute(_RUNNING)]
