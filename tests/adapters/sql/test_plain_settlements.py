"""The straight way leaves in the store what the general one leaves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.adapters.sql.conftest import OpenStore
from tests.contract.bench import TOKEN_HASH, notification, targets
from waypost.domain.delivery import Attempt
from waypost.domain.notification import Lane
from waypost.domain.settlement import Again, Change, Sent, Settlement
from waypost.domain.time import Instant
from waypost.ports.work import NewNotification, Settled
from waypost.stores.sql.connection import connect

NOW = Instant(1_700_000_000_000)
TAKEN = Sent("p")
TABLES = {
    "notification": "seq, id, status, due_at, reason, withdrawn",
    "receipt": "notification_id, n, device_id, channel, status, attempt, retries, throttles, due_at, parked,"
    " provider_id, code, reason, dead, first_attempt_at, last_attempt_at, sent_at, resolved_at, attempts, app, shard",
    "counter": "app, lane, status, delta",
}


@pytest.mark.asyncio
@pytest.mark.parametrize("code", ["", "200"])
@pytest.mark.parametrize("provider_id", ["", "projects/p/messages/1"])
async def test_both_ways_leave_the_same(
    code: str, provider_id: str, tmp_path: Path, open_at: OpenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Eighty notifications of three targets each, so that rows are written by 64, by 8 and one at a time."""
    made = [notification(NOW) for _ in range(81)]
    found: list[dict[str, list[Any]]] = []
    for name in ("straight.db", "general.db"):
        store = await open_at(tmp_path / name)
        await store.work.accept([NewNotification(one) for one in made])
        lease = await store.work.lease(Lane.NORMAL, 100, NOW)
        changes = tuple(_change(n, Sent(provider_id), code) for n in range(3))
        settled = [Settled(item.notification, changes, targets(3)) for item in lease.items]
        assert len(settled) == 81
        assert all(one.is_plain for one in settled)
        if name == "general.db":
            monkeypatch.setattr(Settled, "is_plain", False)
        assert await store.work.settle(lease, settled) == []
        found.append(_stored(tmp_path / name))
    assert len(found[0]["receipt"]) == 243
    assert found[0] == found[1]


def test_only_what_is_over_at_the_first_attempt_is_plain() -> None:
    """Another target still open, a second attempt, or any other settlement takes the general way."""
    made = notification(NOW)
    two = targets(2)
    again = Again(Instant(NOW + 5), spends_attempt=True, code="x", why="y")
    assert Settled(made, (_change(0), _change(1)), two).is_plain
    assert Settled(made, (_change(1), _change(0)), two).is_plain
    assert not Settled(made, (_change(0), _change(1)), two[::-1]).is_plain
    assert not Settled(made, (_change(0),), two).is_plain
    assert not Settled(made, (_change(0), _change(1, again)), two).is_plain
    assert not Settled(made, (_change(0), _change(1, attempt=2)), two).is_plain
    assert not Settled(made, (_change(0), _change(1))).is_plain
    assert not Settled(made, (_change(0), _change(0)), two).is_plain
    assert not Settled(made, (_change(0), _change(2)), two).is_plain


def _change(n: int, settlement: Settlement = TAKEN, code: str = "", attempt: int = 1) -> Change:
    return Change(n, attempt, settlement, Instant(NOW + 2), Attempt(NOW, "taken", code, "", TOKEN_HASH))


def _stored(database: Path) -> dict[str, list[Any]]:
    connection = connect(database, read_only=True)
    try:
        return {
            table: connection.execute(f"SELECT {columns} FROM {table} ORDER BY 1, 2, 3").fetchall()  # noqa: S608 - names
            for table, columns in TABLES.items()
        }
    finally:
        connection.close()
