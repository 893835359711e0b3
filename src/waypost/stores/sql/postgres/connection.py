"""Connections to PostgreSQL: how each is opened, and what its failures mean."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg import errors, pq
from psycopg.abc import PQGen
from psycopg.conninfo import conninfo_to_dict
from psycopg.types.numeric import Int8BinaryDumper

from waypost.domain.errors import ConfigurationError
from waypost.domain.time import MINUTE_MS, Instant
from waypost.stores.sql.driver import Answer, Cursor, Row
from waypost.stores.sql.engine import Overtaken
from waypost.stores.sql.faults import StoreFault
from waypost.stores.sql.postgres.statements import DIALECT, Copy, changing, claim, insertion, over_list, translated

CONNECT_TIMEOUT_S = 2
STATEMENT_TIMEOUT_MS = 2_500
IDLE_TRANSACTION_MS = 2_000
"""Milliseconds after which the server ends a transaction whose process stands still, and frees its locks."""
ANSWER_TIMEOUT_S = 4.0
"""Seconds without an answer, although it promised to give up before, after which a server is away."""

_SESSION = {
    "statement_timeout": STATEMENT_TIMEOUT_MS,
    "idle_in_transaction_session_timeout": IDLE_TRANSACTION_MS,
    # Statements are planned for what they bind: that prunes partitions, and no plan turns bad after its fifth use.
    "plan_cache_mode": "force_custom_plan",
    "enable_seqscan": "off",  # every statement here has its index; a new partition has no statistics yet
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "jit": "off",
}
_READ_ONLY_SESSION = b"SET default_transaction_read_only = on"
"""Not among the options of the connection: libpq would take the server for one that cannot be written to."""
_TARGET = "target_session_attrs"
_TIMEOUTS: dict[str, Any] = {
    "connect_timeout": CONNECT_TIMEOUT_S,
    "tcp_user_timeout": 3_000,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
}


_NAME = "waypost"
"""The name that tells the server whose a connection is, as by every version."""
WRITING = 0x5759_7003
"""The advisory lock that every transaction of Waypost's that writes shares."""
_END = "SELECT CAST(CAST(pg_snapshot_xmax(pg_current_snapshot()) AS text) AS bigint)"
_LOCKS = """\
SELECT pid, CAST(transactionid AS text) FROM pg_locks WHERE locktype = 'transactionid' AND mode = 'ExclusiveLock'
UNION ALL SELECT pid, NULL FROM pg_locks WHERE locktype = 'advisory' AND objid = CAST(? AS bigint)
    AND classid = 0 AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
UNION ALL SELECT pid, NULL FROM pg_stat_activity WHERE application_name = ? AND datname = current_database()
"""


class Texts(list[Any]):
    """A bound list of texts: lists of the client's own would be asked for the type of each element."""


class Numbers(list[Any]):
    """A bound list of numbers."""


class Blobs(list[Any]):
    """A bound list of bytes."""


LISTS: dict[str, type[list[Any]]] = {"text": Texts, "int8": Numbers, "bytea": Blobs}
_LIST_OF: dict[type, type[list[Any]]] = {str: Texts, int: Numbers, bytes: Blobs}


class _Bounded(psycopg.Connection[Row]):
    """A connection that waits for no answer for ever."""

    answer_timeout_s = ANSWER_TIMEOUT_S

    def wait(self, gen: PQGen[Any], interval: float = 0.1, timeout: float | None = None) -> Any:
        """See psycopg; a server that stands still is a connection lost."""
        try:
            return super().wait(gen, interval, self.answer_timeout_s if timeout is None else timeout)
        except errors._WaitTimeout:
            self.pgconn.finish()
            raise psycopg.OperationalError("the server did not answer in time") from None


def connect(url: str, *, lock_timeout_s: float = 2.0, read_only: bool = False) -> PostgresConnection:
    """Open a connection without implicit transactions, for one thread at a time."""
    options = _SESSION | {"lock_timeout": round(lock_timeout_s * 1000)}
    raw = _Bounded.connect(
        of_primary(url),
        autocommit=True,
        prepare_threshold=1,
        cursor_factory=psycopg.RawCursor,
        application_name=_NAME,
        options=" ".join(f"-c {name}={value}" for name, value in options.items()),
        **_TIMEOUTS,
    )
    if read_only:
        try:
            raw.execute(_READ_ONLY_SESSION)
        except BaseException:
            raw.close()
            raise
    raw.prepared_max = 1_000
    raw.adapters.register_dumper(int, Int8BinaryDumper)  # one width, so that one prepared statement serves all numbers
    for kind, of_kind in LISTS.items():
        dumper = raw.adapters.get_dumper_by_oid(raw.adapters.types[kind].array_oid, pq.Format.BINARY)
        raw.adapters.register_dumper(of_kind, dumper)
    return PostgresConnection(raw)


def of_primary(url: str) -> str:
    """Point *url*, which may name several hosts, at the one that takes writes, unless it says what it wants.

    Each host is asked in turn (libpq, "target_session_attrs"): after a failover, the one that was promoted.
    ConfigurationError where it cannot be read.
    """
    try:
        says = _TARGET in conninfo_to_dict(url)
    except psycopg.ProgrammingError:
        raise ConfigurationError("store", 'is no URL that PostgreSQL takes (libpq, "Connection URIs")') from None
    if says:
        return url
    return f"{url}{'&' if '?' in url else '?'}{_TARGET}=read-write"


class _Awaited:
    """A statement in a pipeline (fulfils engine.Cursor).

    Its answer is awaited by a Sync: only then does the server count a client that stands still as idle in its
    transaction, and ends that in time (PostgreSQL, 55.2.4).
    """

    def __init__(self, cursor: psycopg.Cursor[Row], pipeline: psycopg.Pipeline) -> None:
        self._cursor = cursor
        self._pipeline = pipeline

    def _answered(self) -> psycopg.Cursor[Row]:
        if self._cursor.pgresult is None:
            self._pipeline.sync()
        return self._cursor

    @property
    def rowcount(self) -> int:
        """See Cursor."""
        return self._answered().rowcount

    def fetchone(self) -> Any:
        """See Cursor."""
        return self._answered().fetchone()

    def fetchall(self) -> list[Any]:
        """See Cursor."""
        return self._answered().fetchall()

    def __iter__(self) -> Iterator[Any]:
        return iter(self._answered())


class PostgresConnection:
    """A connection that takes statements as SQLite has them (fulfils engine.Connection)."""

    dialect = DIALECT

    def __init__(self, raw: psycopg.Connection[Row]) -> None:
        self.raw = raw
        self._pipeline: psycopg.Pipeline | None = None
        self.begin_again: Callable[[], None] = lambda: None
        """Called to say again what a transaction of the writer begins with."""
        self._claims: list[tuple[Cursor, int]] = []
        """The claims in this transaction, and how many keys each must have been."""

    def execute(self, sql: str, bound: Sequence[Any] = ()) -> Cursor:
        """See Connection; in a pipeline it is only sent."""
        cursor = self.raw.execute(translated(sql), bound, binary=True)
        return cursor if self._pipeline is None else _Awaited(cursor, self._pipeline)

    @contextmanager
    def pipelined(self) -> Iterator[None]:
        """Send statements without waiting for the answers of those before."""
        with self.raw.pipeline() as pipeline:
            self._pipeline = pipeline
            try:
                yield
            finally:
                self._pipeline = None

    def executemany(self, sql: str, rows: Iterable[Sequence[Any]]) -> Cursor:
        """See Connection: one round trip."""
        cursor = self.raw.cursor()
        cursor.executemany(translated(sql), rows)
        return cursor

    def lists(self, sql: str, keys: Sequence[Any]) -> Iterator[tuple[str, Sequence[Any]]]:
        """See Connection: one list is bound, however long."""
        if keys:
            yield over_list(sql), (_LIST_OF[type(keys[0])](keys),)

    def ask(self, sql: str, keys: Sequence[Any]) -> Answer:
        """See Connection."""
        asked = [self.execute(said, bound) for said, bound in self.lists(sql, keys)]
        return lambda: [row for cursor in asked for row in cursor.fetchall()]

    def ask_in(self, tables: Sequence[str], columns: str, keys: Sequence[bytes]) -> Answer:
        """See Connection: one question, by each table's own index whatever the server knows of it."""
        if not tables or not keys:
            return list
        each = (f"SELECT {columns.format(table=table)} FROM {table} WHERE key = ANY(?1)" for table in tables)  # noqa: S608 - as above
        return self.execute(" UNION ALL ".join(each), (_LIST_OF[bytes](keys),)).fetchall

    def insert_all(self, insert: str, values: str, rows: Sequence[Row], _alike: tuple[int, ...] = ()) -> None:
        """See Connection."""
        if not rows:
            return
        how = insertion(insert, values)
        if not isinstance(how, Copy):
            last = {how.key(row): row for row in rows}.values()  # one statement changes no row twice
            self.raw.execute(how.sql, _by_column(how.types, list(last)))
            return
        if self._pipeline is not None:
            self.raw.execute(how.in_pipeline, _by_column(how.bound_types, rows))
            return
        with self.raw.cursor() as cursor, cursor.copy(how.sql) as copy:
            copy.set_types(how.types)
            for row in map(how.row, rows):
                copy.write_row(row)

    def update_all(self, table: str, columns: Sequence[str], key: Sequence[str], rows: Sequence[Row]) -> None:
        """See Connection: one statement with a list for each column."""
        if rows:
            sql, types = changing(table, tuple(columns), tuple(key))
            self.raw.execute(sql, _by_column(types, rows))

    def whole_before(self) -> int:
        """See Connection: the first transaction of Waypost's that is open; what others have open does not matter.

        Whoever writes for Waypost holds WRITING before the server gives it a number. One that had its number when the
        end was asked for, and holds nothing afterwards, has ended. Versions that know no WRITING give their name.
        """
        ((end,),) = self.execute(_END).fetchall()
        rows = self.execute(_LOCKS, (WRITING, _NAME)).fetchall()
        writers = {pid for pid, number in rows if number is None}
        numbers = (end + _as_signed(int(number) - end) for pid, number in rows if number is not None and pid in writers)
        return int(min(numbers, default=end))

    def counter_part(self, now: Instant) -> int:
        """See Connection: by the server's process and the minute, so that no row has many versions, in turn."""
        return now // MINUTE_MS % _MINUTES * _PARTS + self.raw.info.backend_pid % _PARTS

    def claim_all(self, table: str, columns: str, rows: Sequence[Row], now: Instant) -> None:
        """See Connection: whoever claims the same key meanwhile is waited for; all do so in the order of the keys."""
        sql, types = claim(table, columns)
        self._claims.append((self.raw.execute(sql, [*_by_column(types, sorted(rows)), now]), len(rows)))

    @property
    def is_pipelined(self) -> bool:
        """Whether statements are sent without waiting for answers."""
        return self._pipeline is not None

    def await_answers(self) -> None:
        """Wait for what was sent, in a pipeline: an error of it is raised here."""
        if self._pipeline is not None:
            self._pipeline.sync()

    def commit_so_far(self) -> None:
        """See Connection: locks and settings end with what is committed."""
        self.execute("COMMIT AND CHAIN")
        self.begin_again()

    def forget_claims(self) -> None:
        """Forget claims: nothing is claimed yet in the transaction that begins."""
        self._claims.clear()

    def require_claims(self) -> None:
        """Raise Overtaken where a key was another's by the time that it was claimed."""
        for made, wanted in self._claims:
            if made.rowcount < wanted:
                raise Overtaken

    def close(self) -> None:
        """See Connection."""
        self.raw.close()


def _as_signed(difference: int) -> int:
    """Return how far one transaction is from another, of which the last 32 bits are known."""
    return (difference + (1 << 31)) % (1 << 32) - (1 << 31)


_PARTS = 256
_MINUTES = 60


def _by_column(types: Sequence[str], rows: Sequence[Row]) -> list[list[Any]]:
    return [LISTS[kind](column) for kind, column in zip(types, zip(*rows, strict=True), strict=True)]


_BUSY = ("55P03", "57014")  # lock_not_available, query_canceled: its time was over
_CLASH = ("40P01", "40001")  # deadlock_detected, serialization_failure
TAKEN = ("23505", "42P01", "42P07", "42710")  # unique_violation, undefined_table, duplicate_table, duplicate_object
"""The SQLSTATEs of a writer where another transaction made or dropped a table since this one looked."""
_LOST_CLASSES = ("08", "53", "57", "58")
"""The SQLSTATE classes of a lost connection: exceptions, resources, operator intervention, system errors."""
_READ_ONLY = "25006"  # the server became a standby
_IDLE = "25P03"  # idle_in_transaction_session_timeout: this process stood still
_CORRUPT = ("XX001", "XX002")  # data_corrupted, index_corrupted


def fault_of(error: BaseException) -> StoreFault:
    """Classify what psycopg raised, by SQLSTATE (PostgreSQL's appendix A)."""
    if isinstance(error, OSError):
        return StoreFault.LOST
    if isinstance(error, Overtaken):
        return StoreFault.CLASH
    if not isinstance(error, psycopg.Error):
        return StoreFault.OPERATION
    state = error.sqlstate
    if state is None:
        return StoreFault.LOST if isinstance(error, psycopg.OperationalError) else StoreFault.OPERATION
    if state in _BUSY:
        return StoreFault.BUSY
    if state in _CLASH:
        return StoreFault.CLASH
    if state[:2] in _LOST_CLASSES or state in (_READ_ONLY, _IDLE):
        return StoreFault.LOST
    return StoreFault.BROKEN if state in _CORRUPT else StoreFault.OPERATION
