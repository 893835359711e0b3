"""Recipients of a bulk job whose targets are all taken at once are written as the general way writes them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.adapters.sql.conftest import OpenStore
from tests.contract.bench import APP, TOKEN_HASH, again, targets
from tests.contract.bulk_bench import job
from waypost.domain.bulk import PIECE, JobOrder, Recipient
from waypost.domain.delivery import Attempt
from waypost.domain.ids import UserId
from waypost.domain.notification import Lane
from waypost.domain.settlement import Change, Sent
from waypost.domain.status import NotificationStatus
from waypost.domain.time import Instant
from waypost.ports.work import Settled, WorkItem
from waypost.stores.sql.connection import connect

NOW = Instant(1_700_000_000_000)
TABLES = {
    "notification": "seq, id, app, user_id, shard, lane, status, due_at, reason, withdrawn, job, variables, round",
    "receipt": "notification_id, n, device_id, channel, status, attempt, provider_id, code, dead, first_attempt_at,"
    " last_attempt_at, sent_at, resolved_at, attempts, app, shard",
    "counter": "app, lane, status, delta",
    "bulk_count": "job, status, n",
    "bulk_piece": "seq, job, written, open",
    "bulk_job": "number, total, left_out",
}


@pytest.mark.asyncio
async def test_both_ways_leave_the_same(tmp_path: Path, open_at: OpenStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ninety recipients of three targets each; every tenth has none, and every eleventh one that is tried again."""
    found: list[dict[str, list[Any]]] = []
    for name in ("columns.db", "general.db"):
        store = await open_at(tmp_path / name)
        await store.bulk.create(job(registry=None), None, b"")
        users = [Recipient(UserId(f"u{n:02}"), {"name": f"n{n}"} if n % 2 else {}) for n in range(90)]
        await store.bulk.add(APP, job().id, users)
        await store.bulk.order(APP, job().id, JobOrder.START, NOW)
        await store.bulk.enqueue(APP, job().id, PIECE, PIECE)
        lease = await store.work.lease(Lane.BULK, PIECE, NOW)
        settled = [_settled(n, item) for n, item in enumerate(lease.items)]
        assert sum(one.is_plain for one in settled) == 73
        if name == "general.db":
            monkeypatch.setattr(Settled, "is_plain", False)
        assert await store.work.settle(lease, settled) == []
        found.append(_stored(tmp_path / name))
    assert len(found[0]["notification"]) == 90
    assert len(found[0]["receipt"]) == 3 * 81
    assert found[0] == found[1]


def _settled(n: int, item: WorkItem) -> Settled:
    if n % 10 == 0:
        return Settled(item.notification, (), (), NotificationStatus.NO_TARGETS)
    taken = [_taken(target) for target in range(3)]
    if n % 11 == 0:
        taken[1] = again(1, Instant(NOW + 2))
    return Settled(item.notification, tuple(taken), targets(3))


def _taken(n: int) -> Change:
    return Change(n, 1, Sent("p"), Instant(NOW + 2), Attempt(NOW, "taken", "200", "", TOKEN_HASH))


def _stored(database: Path) -> dict[str, list[Any]]:
    connection = connect(database, read_only=True)
    try:
        rows = {
            table: connection.execute(f"SELECT {columns} FROM {table} ORDER BY 1, 2, 3").fetchall()  # noqa: S608 - names
            for table, columns in TABLES.items()
        }
        moves = [
            msgspec.msgpack.decode(row[0]) for row in connection.execute("SELECT moves FROM journal ORDER BY position")
        ]
        return rows | {"journal": [_told(move) for row in moves for move in row]}
    finally:
        connection.close()


def _told(move: list[Any]) -> list[Any]:
    """What readers take from a move, without the time of the transaction and the hash of a token that is not dead."""
    passed_over = {"NotificationMoved": {6}, "DeliveryMoved": {13}}[move[0]]
    return [part for n, part in enumerate(move) if n not in passed_over]
