"""Walking a bulk job's recipients: one page is read, cut into pieces, and written with how far the walk has come.

    bulk_job    UPDATE of walked_to, walked, pieces, total, left_out, if it still stands where the page began
    bulk_piece  one row for each piece: a range of user ids, no recipient by name

The audience is looked at here and again when a piece is read (bulk_load.py): the later look decides, so that who opts
out meanwhile gets nothing. A page reads a bounded number of rows, whatever a filter leaves of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from waypost.domain.bulk import PAGE, PIECES_LIMIT, BulkJob, JobId, PageRow, Piece, RegistryFilter, cut_page
from waypost.domain.ids import SHARDS, AppId
from waypost.ports.bulk import Enqueued
from waypost.stores.sql.bulk_rows import find_job, job_of
from waypost.stores.sql.driver import Connection
from waypost.stores.sql.segment_filter import Asked
from waypost.stores.sql.segment_walk import matching_page
from waypost.stores.sql.transaction import OperationKind, Transaction

PAGE_PER_RECIPIENT = 4
PAGE_LEAST = 100
"""The least rows of a page, which is no larger than the recipients that may be enqueued ask for."""

_REGISTRY_PAGE = """\
SELECT user_id, max(matches), EXISTS (SELECT 1 FROM opt_out WHERE app = ? AND opt_out.user_id = page.user_id), count(*)
FROM (
  SELECT user_id, {matches} AS matches FROM device WHERE app = ? AND user_id > ? ORDER BY user_id LIMIT 0 + ?
) AS page
GROUP BY user_id ORDER BY user_id
"""
_LIST_PAGE = """\
SELECT user_id, 1, EXISTS (SELECT 1 FROM opt_out WHERE app = ? AND opt_out.user_id = page.user_id), 1
FROM (SELECT user_id FROM bulk_recipient WHERE job = ? AND user_id > ? ORDER BY user_id LIMIT 0 + ?) AS page
"""
_SEGMENT_PAGE = """\
SELECT user_id, matches, EXISTS (SELECT 1 FROM opt_out WHERE app = ? AND opt_out.user_id = page.user_id), 1
FROM ({page}) AS page ORDER BY user_id
"""
_WALK_ON = """\
UPDATE bulk_job SET walked_to = ?, walked = ?, pieces = pieces + ?, total = total + ?, left_out = left_out + ?
WHERE number = ? AND walked_to = ? AND walked = 0 AND state = 'running'
"""
_INSERT_PIECE = """\
INSERT INTO bulk_piece (job, n, shard, after_user, until_user, expected, written, open) VALUES (?, ?, ?, ?, ?, ?, 0, 1)
"""


class WalkStep(Struct, frozen=True):
    """A step of a job's walk, from where it stands."""

    number: int
    first_piece: int
    walked_from: str
    walked_to: str
    walked: bool
    pieces: tuple[Piece, ...]
    left_out: int


def matching(registry: RegistryFilter, token_use: str) -> tuple[str, list[Any]]:
    """Build the condition on a device that a filter makes, and what it binds."""
    conditions, bound = ["active = 1", "token_use = ?"], [token_use]
    for column, words in (("platform", registry.platforms), ("app_version", registry.app_versions)):
        if words:
            conditions.append(f"{column} IN ({','.join('?' * len(words))})")
            bound += words
    if registry.locales:
        begins = (f"locale = ? OR substr(locale, 1, {len(each) + 1}) IN (?, ?)" for each in registry.locales)
        conditions.append(f"({' OR '.join(begins)})")
        bound += [each for locale in registry.locales for each in (locale, f"{locale}-", f"{locale}_")]
    if registry.seen_after is not None:
        conditions.append("last_seen_at >= ?")
        bound.append(registry.seen_after)  # type: ignore[arg-type]  # a list of what SQLite binds
    return f"CASE WHEN {' AND '.join(conditions)} THEN 1 ELSE 0 END", bound


def asked_by(job: BulkJob, connection: Connection) -> Asked:
    """Return what the filter of a job's users is asked with: days are counted back from when the job was made."""
    return Asked(job.app, job.created_at, connection.dialect)


def next_step(connection: Connection, app: AppId, job_id: JobId, most: int, size: int) -> WalkStep | None:
    """Read a page and cut it; None where there is no such job."""
    row = find_job(connection, app, job_id)
    if row is None:
        return None
    job, walked_to, pieces = job_of(row), row[9], row[10]
    limit = min(PAGE, PAGE_PER_RECIPIENT * most + PAGE_LEAST)
    whole, is_last = whole_page(connection, row[0], job, walked_to, limit)
    cut, left_out, until = cut_page(whole, walked_to, most, size)
    walked = is_last and until == (whole[-1].user_id if whole else walked_to)
    assert pieces + len(cut) < PIECES_LIMIT, "more pieces than ids can name"
    return WalkStep(row[0], pieces, walked_to, until, walked, tuple(cut), left_out)


def whole_page(connection: Connection, number: int, job: BulkJob, after: str, limit: int) -> tuple[list[PageRow], bool]:
    """Read the users in at most *limit* rows after a user, all of each; and whether there are no more."""
    page = [_row_of(job, each) for each in _page(connection, number, job, after, limit)]
    is_last = sum(each.rows for each in page) < limit
    return page if is_last or len(page) == 1 else page[:-1], is_last  # the last one's devices may go on behind


def _row_of(job: BulkJob, found: tuple[Any, ...]) -> PageRow:
    row = PageRow(*found)
    if job.part is None or not row.matches or job.part.has(row.user_id):
        return row
    return PageRow(row.user_id, False, row.opted_out, row.rows)


def _page(connection: Connection, number: int, job: BulkJob, after: str, limit: int) -> list[tuple[Any, ...]]:
    if job.segment is not None:
        table, asked = matching_page(job.segment, asked_by(job, connection), after, limit)
        return connection.execute(_SEGMENT_PAGE.format(page=table), (job.app, *asked)).fetchall()
    if job.registry is None:
        return connection.execute(_LIST_PAGE, (job.app, number, after, limit)).fetchall()
    condition, bound = matching(job.registry, job.token_use)
    sql = _REGISTRY_PAGE.format(matches=condition)
    return connection.execute(sql, (job.app, *bound, job.app, after, limit)).fetchall()


def _run(transaction: Transaction, ops: Sequence[WalkStep]) -> list[Enqueued]:
    return [_walk_on(transaction.connection, step) for step in ops]


ENQUEUE: OperationKind[WalkStep, Enqueued] = OperationKind("bulk_enqueue", _run, durable=False)


def _walk_on(connection: Connection, step: WalkStep) -> Enqueued:
    total = sum(piece.expected for piece in step.pieces)
    moved = (step.walked_to, int(step.walked), len(step.pieces), total, step.left_out, step.number, step.walked_from)
    if connection.execute(_WALK_ON, moved).rowcount == 0:
        return Enqueued(0, moved=False)
    rows = [
        (step.number, n, n % SHARDS, piece.after, piece.until, piece.expected)
        for n, piece in enumerate(step.pieces, start=step.first_piece)
    ]
    connection.executemany(_INSERT_PIECE, rows)
    return Enqueued(total, moved=True, walked=step.walked)
