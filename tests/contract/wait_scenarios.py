"""Targets that wait, killed: the rows of the kill table that speak of the gap between a settlement and a fallback."""

from __future__ import annotations

from tests.contract.bench import APP, Bench, sent, targets
from tests.contract.kills import Scenario, finish, known, nothing, sound
from waypost.domain.amendment import Confirm, Confirmed, NotConfirmed
from waypost.domain.channel import Channel
from waypost.domain.delivery import Target
from waypost.domain.ids import DeviceId
from waypost.domain.status import DeliveryStatus, NotificationStatus
from waypost.domain.time import SECOND_MS
from waypost.domain.waits import WaitsFor
from waypost.ports.work import Settled

D = DeliveryStatus
WAIT_MS = 120 * SECOND_MS
"""Longer than what a lease of a dead worker lasts, where it ends by time."""
FALLBACK = (*targets(1), Target(1, DeviceId("+4912345"), Channel("sms"), waits=WaitsFor((0,), 120)))
WAITING: dict[str, Scenario] = {}
_MADE = [known(n) for n in range(1, 4)]


async def _accepted(bench: Bench) -> None:
    await bench.accept(*_MADE)


async def _lease(bench: Bench) -> None:
    bench.leased = await bench.take()


async def _begin_waits(bench: Bench) -> None:
    parts = [Settled(item.notification, (sent(0, bench.now),), FALLBACK) for item in bench.leased.items]
    assert await bench.settle(bench.leased, *parts) == []


async def _stands(bench: Bench) -> set[tuple[DeliveryStatus, ...]]:
    details = await sound(bench)
    return {tuple(receipt.status for receipt in detail.receipts) for detail in details.values()}


async def _begin_was_killed(bench: Bench) -> str:
    shapes = await _stands(bench)
    assert len(shapes) == 1, "all of a settle or nothing"
    if shapes == {()}:
        assert len(await bench.leasable()) == 3
        return "nothing settled; all leased again"
    assert shapes == {(D.SENT, D.PENDING)}
    assert await bench.leasable() == [], "the wait began with the settlement"
    second = await bench.crash()
    second.clock.advance(WAIT_MS)
    await finish(second)
    assert await _stands(second) == {(D.SENT, D.SENT)}
    return "all wait; each fallback is sent"


WAITING["wait begins"] = Scenario("sent … settled, wait begun", _accepted, _lease, _begin_waits, _begin_was_killed)


async def _waiting(bench: Bench) -> None:
    await _accepted(bench)
    await _lease(bench)
    await _begin_waits(bench)


def _confirmations(bench: Bench) -> list[Confirm]:
    return [Confirm(APP, each.id, 0, D.DELIVERED, bench.now) for each in _MADE]


async def _confirm(bench: Bench) -> None:
    await bench.worker.amend(_confirmations(bench), bench.now)


async def _confirm_was_killed(bench: Bench) -> str:
    shapes = await _stands(bench)
    answers = set(await bench.worker.amend(_confirmations(bench), bench.now))
    bench.clock.advance(WAIT_MS)
    assert await bench.leasable() == []
    assert await _stands(bench) == {(D.DELIVERED, D.CANCELLED)}
    if shapes == {(D.SENT, D.PENDING)}:
        assert answers == {Confirmed(D.DELIVERED)}
        return "they wait; the repeat confirms"
    assert (shapes, answers) == ({(D.DELIVERED, D.CANCELLED)}, {NotConfirmed(D.DELIVERED)})
    return "confirmed; no fallback is sent"


WAITING["confirm"] = Scenario("sibling confirmed … wait ended", _waiting, nothing, _confirm, _confirm_was_killed)


async def _fire_and_confirm(bench: Bench) -> None:
    bench.clock.advance(WAIT_MS)
    lease = await bench.take(2)
    await _confirm(bench)
    parts = [Settled(item.notification, (sent(1, bench.now),)) for item in lease.items]
    assert await bench.settle(lease, *parts) == []


async def _fire_was_killed(bench: Bench) -> str:
    await sound(bench)
    await _confirm(bench)
    shapes = await _stands(bench)
    assert shapes <= {(D.DELIVERED, D.CANCELLED), (D.DELIVERED, D.SENT), (D.DELIVERED, D.PENDING)}
    bench.clock.advance(WAIT_MS)
    await finish(await bench.crash())
    ended = await _stands(bench)
    assert ended <= {(D.DELIVERED, D.CANCELLED), (D.DELIVERED, D.SENT)}, "each is sent or cancelled, none is stuck"
    statuses = set((await bench.store.views.statuses(APP, [each.id for each in _MADE])).values())
    assert statuses == {NotificationStatus.DELIVERED}
    return "leased when confirmed; sent" if (D.DELIVERED, D.SENT) in ended else "not leased any more; cancelled"


WAITING["fallback"] = Scenario(
    "wait over … leased … confirmed … sent", _waiting, nothing, _fire_and_confirm, _fire_was_killed
)
