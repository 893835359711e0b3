"""A row of the kill table, and what must hold whenever a process was killed.

A scenario is played by a victim on data that was prepared before; whoever finds the data afterwards checks it. Both
know the same notifications, since their ids are fixed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import msgspec
from msgspec import Struct

from tests.contract.bench import APP, Bench, notification, sent, targets
from tests.contract.clock import START
from waypost.domain.content import Content
from waypost.domain.ids import NotificationId, UserId
from waypost.domain.moves import NotificationMoved
from waypost.domain.notification import Guarantee, Notification
from waypost.domain.status import FINAL, NotificationStatus, final_status
from waypost.domain.time import HOUR_MS
from waypost.ports.views import HistoryQuery, NotificationDetail
from waypost.ports.work import Settled

PENDING = NotificationStatus.PENDING

Act = Callable[[Bench], Awaitable[None]]
Find = Callable[[Bench], Awaitable[str]]


class Scenario(Struct, frozen=True):
    """One row: *prepare* is done before by somebody who lives, *begin* and *play* by the victim, *find* afterwards."""

    row: str
    prepare: Act
    begin: Act
    """The victim's own preparation: what only lives as long as it does."""
    play: Act
    """Killed before every statement of this."""
    find: Find
    """Check what is there and go on from it; the name of what was found."""


def known(n: int, *, body: str | None = None, guarantee: Guarantee = Guarantee.AT_LEAST_ONCE) -> Notification:
    """The *n*-th notification that victim and finder both know."""
    made = notification(START, user=f"u{n}", guarantee=guarantee)
    fixed = NotificationId(START.to_bytes(6, "big") + b"\x70\x00\x80" + bytes(6) + bytes([n]))
    content = Content(title="Order", body=body or f"number {n}")
    return msgspec.structs.replace(made, id=fixed, user_id=UserId("ann" if body else f"u{n}"), content=content)


async def nothing(bench: Bench) -> None:
    """No preparation."""


async def accepted(bench: Bench) -> None:
    """Accept the three that are known."""
    await bench.accept(*(known(n) for n in range(1, 4)))


async def lease_all(bench: Bench) -> None:
    """Lease all that is there."""
    bench.leased = await bench.take()


async def sound(bench: Bench) -> dict[NotificationId, NotificationDetail]:
    """Check what holds at any moment: nothing half-written, one state each, the journal and the rows agree."""
    records = await bench.store.views.history(HistoryQuery(APP, limit=1000))
    details = {record.notification.id: await bench.detail(record.notification) for record in records}
    told: dict[NotificationId, list[NotificationMoved]] = {}
    for move in await bench.moves():
        if isinstance(move, NotificationMoved):
            told.setdefault(move.notification_id, []).append(move)
    assert set(told) == set(details), "each record has its journal row and the other way round"
    counts: dict[NotificationStatus, int] = {}
    for notification_id, detail in details.items():
        stored = detail.record.status if detail.record.status in FINAL else PENDING
        counts[stored] = counts.get(stored, 0) + 1
        moves = told[notification_id]
        assert [move.before for move in moves] == [None, *(move.after for move in moves[:-1])]
        assert moves[-1].after is stored
        assert sum(move.after in FINAL and move.before not in FINAL for move in moves) == detail.record.round - (
            stored is PENDING
        )
        if detail.receipts:
            is_open = any(receipt.is_open for receipt in detail.receipts)
            assert is_open == (stored is PENDING)
            assert is_open or stored is final_status(receipt.status for receipt in detail.receipts)
    assert dict(await bench.store.views.balance()) == counts
    return details


async def finish(bench: Bench) -> None:
    """Deliver everything there is, in a day at most; nothing is stuck."""
    for _ in range(6):
        lease = await bench.take()
        for item in lease.items:
            detail = await bench.detail(item.notification)
            count = len(detail.receipts) or 2
            left = {target.n: target.attempt for target in item.open_targets or ()}
            changes = [sent(n, bench.now, left.get(n, 0) + 1) for n in (left or range(count))]
            listed = targets(count) if item.open_targets is None else None
            assert await bench.settle(lease, Settled(item.notification, tuple(changes), listed)) == []
        bench.clock.advance(HOUR_MS)
    details = await sound(bench)
    assert all(detail.record.status in FINAL for detail in details.values()), "nothing is stuck"
