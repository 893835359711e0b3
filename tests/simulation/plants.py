"""Faults that are planted in the code under simulation, to see that seeds find them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

import tests.memory.accept
import tests.memory.work
from tests.memory.steps import take
from tests.memory.store import LeasedPart, MemoryStore, StoredRow
from tests.memory.work import MemoryWork
from waypost.domain import progress
from waypost.domain.delivery import Receipt
from waypost.domain.errors import Unavailable
from waypost.domain.moves import Moved
from waypost.domain.progress import Progress, Stale
from waypost.domain.settlement import Change, Unstarted, apply
from waypost.domain.status import DeliveryStatus
from waypost.domain.time import Instant, later
from waypost.domain.waits import WaitsFor
from waypost.pipeline import report
from waypost.ports.work import Lease, Settled
from waypost.runtime import lane
from waypost.runtime.leasing import LeaseLoop
from waypost.runtime.settler import Settler


def _settle_without_comparing() -> None:
    """Let a late outcome win over the first one."""

    def applied(receipt: Receipt, change: Change) -> Receipt | None:
        attempt = receipt.attempt if receipt.is_intent else receipt.attempt + 1
        return apply(receipt, msgspec.structs.replace(change, attempt=attempt))

    _put(progress, "apply", applied)


def _never_end_a_lease() -> None:
    """Keep what a dead worker leased."""
    _put(MemoryStore, "is_held", lambda store, part, now: part in store.holds)


def _extend_what_was_taken_over() -> None:
    """Tell a worker that was taken for dead that its lease holds."""

    async def extend(work: MemoryWork, lease: Lease, until: Instant) -> bool:
        return True

    _put(MemoryWork, "extend", extend)


def _lose_wakes() -> None:
    """Wake nobody."""
    _put(LeaseLoop, "wake", lambda loop: None)


def _write_no_intents() -> None:
    """Send what is to be sent once without putting it on record first."""
    _put(lane, "needs_intent", lambda delivery: False)


def _close_no_intents() -> None:
    """Leave an attempt open whose worker died."""
    _put(tests.memory.work, "close_intents", lambda store, row, now: [])


def _send_intents_again() -> None:
    """Give back an attempt whose worker died, as if it had not begun."""

    def close(store: MemoryStore, row: StoredRow, now: Instant) -> list[Moved]:
        over = [
            Change(each.n, each.attempt, Unstarted(), now)
            for each in row.receipts.values()
            if each.is_intent and (each.due_at or 0) <= now
            if not store.is_held(LeasedPart(row.notification.id, each.n), now)
        ]
        return take(store, row, row.progress.settle(over, now), now)

    _put(tests.memory.work, "close_intents", close)


def _claim_no_keys() -> None:
    """Accept a key again."""
    _put(tests.memory.accept, "_claim", lambda store, claims, first_id, now: None)


def _heed_no_confirmation() -> None:
    """Send a fallback although what it stands in for was confirmed."""

    def is_needless(wait: WaitsFor, siblings: Iterable[DeliveryStatus]) -> bool:
        return False

    _put(progress, "is_needless", is_needless)


def _begin_no_wait_anew() -> None:
    """Forget what waits for a sibling once that is settled."""
    _put(Progress, "_follow", lambda step, receipts, now, moves, in_hand=None: [])


def _release_early() -> None:
    """Release what is due in two seconds."""
    released = MemoryWork.promote_due

    async def promote(work: MemoryWork, now: Instant, n: int, lifted: Mapping[str, int] = {}) -> int:
        return await released(work, later(now, 2_000), n, lifted)

    _put(MemoryWork, "promote_due", promote)


def _go_on_with_the_withdrawn() -> None:
    """Lease again what was taken back while a worker had it that died."""
    _put(MemoryWork, "_end_withdrawn", lambda work: None)


def _drop_outcomes() -> None:
    """Drop outcomes while the store is away."""

    async def dropping(settler: Settler, lease: Lease, settled: Sequence[Settled]) -> list[Stale]:
        try:
            stale = await settler._work.settle(lease, settled)
        except Unavailable:
            return []
        settler._note(lease, settled, set())
        return stale

    _put(Settler, "write", dropping)


def _tell_no_dead_tokens() -> None:
    """Keep devices whose tokens are dead."""
    _put(report, "registry_news", lambda moves, deleting: report.RegistryNews((), ()))


def _tell_twice() -> None:
    """Write what was confirmed into the journal twice."""
    confirm = Progress.confirm

    def confirmed(before: Progress, order: Any, held: Any, now: Instant) -> Any:
        step, answer = confirm(before, order, held, now)
        return msgspec.structs.replace(step, moves=step.moves * 2), answer

    _put(Progress, "confirm", confirmed)


def _put(where: Any, name: str, what: Callable[..., Any]) -> None:
    assert hasattr(where, name), f"{where} has no {name}"
    setattr(where, name, what)


PLANTS: Final[Mapping[str, Callable[[], None]]] = {
    plant.__name__.strip("_").replace("_", "-"): plant
    for plant in (
        _settle_without_comparing,
        _never_end_a_lease,
        _extend_what_was_taken_over,
        _lose_wakes,
        _write_no_intents,
        _close_no_intents,
        _send_intents_again,
        _claim_no_keys,
        _heed_no_confirmation,
        _begin_no_wait_anew,
        _release_early,
        _go_on_with_the_withdrawn,
        _drop_outcomes,
        _tell_no_dead_tokens,
        _tell_twice,
    )
}
