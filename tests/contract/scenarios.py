"""What is being done when a process is killed, and what must be found afterwards: the rows of the kill table."""

from __future__ import annotations

import msgspec

from tests.contract.bench import APP, Bench, again, by_content, by_key, intent, sent, targets
from tests.contract.bulk_scenarios import BULK
from tests.contract.clock import START
from tests.contract.erasure_scenarios import ERASING
from tests.contract.kills import Scenario, accepted, finish, known, lease_all, nothing, sound
from tests.contract.order_scenarios import ORDERED
from tests.contract.wait_scenarios import WAITING
from waypost.domain.delivery import FailureClass
from waypost.domain.notification import Guarantee
from waypost.domain.settlement import Dead
from waypost.domain.status import DeliveryStatus, NotificationStatus
from waypost.domain.time import HOUR_MS, MINUTE_MS, later
from waypost.ports.work import Accepted, Duplicate, NewNotification, Settled

SENT, UNKNOWN = NotificationStatus.SENT, NotificationStatus.UNKNOWN
DEAD = Dead("500", "away", FailureClass.RETRYABLE, letter=True)
DEADLINE_MS = 10 * MINUTE_MS

SCENARIOS: dict[str, Scenario] = BULK | ERASING | ORDERED | WAITING


# Accepting.

FIRST, SECOND, TWIN = known(1), known(2, body="same"), known(3, body="same")
BATCH = (NewNotification(FIRST, (by_key(FIRST, "k"),)), NewNotification(SECOND, (by_content(SECOND),)))
BATCH_WITH_TWIN = (*BATCH, NewNotification(TWIN, (by_content(TWIN),)))


async def _accept(bench: Bench) -> None:
    await bench.accept(*BATCH_WITH_TWIN)


async def _accept_was_killed(bench: Bench) -> str:
    details = await sound(bench)
    assert len(details) in {0, 3}, "all of the batch or nothing"
    is_new = not details
    answers = await bench.accept(*BATCH_WITH_TWIN)
    assert answers == [Accepted(FIRST.id, is_new), Accepted(SECOND.id, is_new), Duplicate(SECOND.id, TWIN.id)]
    other = msgspec.structs.replace(FIRST, id=known(9).id)
    assert await bench.accept(NewNotification(other, (by_key(FIRST, "k"),))) == [Duplicate(FIRST.id)]
    assert sorted(await bench.leasable()) == [FIRST.id, SECOND.id]
    return "nothing; the repeat is accepted" if is_new else "all; the repeat gets the same ids"


SCENARIOS["accept"] = Scenario("key claimed … record durable … 202", nothing, nothing, _accept, _accept_was_killed)

# Settling.


async def _settle_part(bench: Bench) -> None:
    lease = bench.leased
    parts = [
        Settled(item.notification, (sent(0, bench.now), again(1, bench.now, wait_ms=HOUR_MS)), targets(3))
        for item in lease.items
    ]
    assert await bench.settle(lease, *parts) == []


async def _settle_part_was_killed(bench: Bench) -> str:
    details = await sound(bench)
    lease = await bench.take()
    assert sorted(item.notification.id for item in lease.items) == [known(n).id for n in range(1, 4)]
    shapes = {tuple(receipt.status for receipt in detail.receipts) for detail in details.values()}
    names = {
        None if item.open_targets is None else tuple(target.n for target in item.open_targets) for item in lease.items
    }
    second = await bench.crash()
    await finish(second)
    assert set((await second.store.views.statuses(APP, list(details))).values()) == {SENT}
    if shapes == {()}:
        assert names == {None}
        return "nothing settled; all leased again"
    assert shapes == {(DeliveryStatus.SENT, DeliveryStatus.PENDING, DeliveryStatus.PENDING)}
    assert names == {(2,)}, "what is sent or waits for its retry is not sent again"
    return "all settled; only the others are sent"


SCENARIOS["settle part"] = Scenario(
    "sent … settled; some targets settled … others", accepted, lease_all, _settle_part, _settle_part_was_killed
)


async def _part_settled(bench: Bench) -> None:
    await accepted(bench)
    await lease_all(bench)
    lease = bench.leased
    parts = [Settled(item.notification, (sent(0, bench.now),), targets(2)) for item in lease.items]
    await bench.settle(lease, *parts)


async def _settle_rest(bench: Bench) -> None:
    lease = bench.leased
    assert len(lease.items) == 3
    parts = [Settled(item.notification, (sent(1, bench.now),)) for item in lease.items]
    assert await bench.settle(lease, *parts) == []


async def _settle_rest_was_killed(bench: Bench) -> str:
    details = await sound(bench)
    statuses = {detail.record.status for detail in details.values()}
    leasable = await bench.leasable()
    if statuses == {SENT}:
        assert leasable == []
        return "finished; nothing is leased"
    assert statuses == {NotificationStatus.PROCESSING}
    assert len(leasable) == 3
    await finish(await bench.crash())
    return "not finished; the last target is leased again"


SCENARIOS["settle rest"] = Scenario(
    "last target settled … acknowledged", _part_settled, lease_all, _settle_rest, _settle_rest_was_killed
)

# Intents.

CAREFUL = known(1, guarantee=Guarantee.AT_MOST_ONCE)


async def _accepted_careful(bench: Bench) -> None:
    await bench.accept(CAREFUL)


async def _intend_and_settle(bench: Bench) -> None:
    lease = bench.leased
    intended = Settled(CAREFUL, (intent(0, bench.now, within_ms=DEADLINE_MS),), targets(1))
    assert await bench.settle(lease, intended) == []
    assert await bench.settle(lease, Settled(CAREFUL, (sent(0, bench.now),))) == []


async def _intent_was_killed(bench: Bench) -> str:
    detail = (await sound(bench))[CAREFUL.id]
    leasable = await bench.leasable()
    if not detail.receipts:
        assert leasable == [CAREFUL.id]
        return "no intent: nothing left; leased again"
    assert leasable == [], "what may have left is never sent again"
    if detail.record.status is SENT:
        return "sent"
    assert detail.receipts[0].is_intent
    bench.clock.advance(DEADLINE_MS)
    assert await bench.leasable() == []
    assert await bench.status(CAREFUL) is UNKNOWN
    await sound(bench)
    return "intent; unknown from its deadline"


SCENARIOS["intent"] = Scenario(
    "at_most_once: intent … sent … settled", _accepted_careful, lease_all, _intend_and_settle, _intent_was_killed
)

# Releasing.


async def _much_is_due(bench: Bench) -> None:
    retried, lost = known(1), CAREFUL_TOO
    await bench.accept(retried, lost, msgspec.structs.replace(known(3), scheduled_at=later(START, MINUTE_MS)))
    lease = await bench.take()
    waits = Settled(retried, (again(0, bench.now),), targets(1))
    intended = Settled(lost, (intent(0, bench.now, within_ms=MINUTE_MS),), targets(1))
    assert await bench.settle(lease, waits, intended) == []


CAREFUL_TOO = known(2, guarantee=Guarantee.AT_MOST_ONCE)


async def _release(bench: Bench) -> None:
    bench.clock.advance(DEADLINE_MS)
    await bench.worker.promote_due(bench.now, 100)
    assert len((await bench.lease()).items) == 2


async def _release_was_killed(bench: Bench) -> str:
    details = await sound(bench)
    was_closed = details[CAREFUL_TOO.id].record.status is UNKNOWN
    bench.clock.advance(DEADLINE_MS)
    assert sorted(await bench.leasable()) == [known(1).id, known(3).id]
    assert await bench.status(CAREFUL_TOO) is UNKNOWN
    await sound(bench)
    await finish(await bench.crash())
    return "due again; the lost intent is closed" if was_closed else "due again; the intent is closed now"


SCENARIOS["release"] = Scenario("due entry released … confirmed", _much_is_due, nothing, _release, _release_was_killed)

# A whole life, killed anywhere.


async def _whole_life(bench: Bench) -> None:
    await bench.accept(*BATCH)
    lease = await bench.take()
    parts = [Settled(item.notification, (sent(0, bench.now), again(1, bench.now)), targets(2)) for item in lease.items]
    await bench.settle(lease, *parts)
    bench.clock.advance(MINUTE_MS)
    lease = await bench.take()
    await bench.settle(lease, *(Settled(item.notification, (sent(1, bench.now, 2),)) for item in lease.items))


async def _whole_life_was_killed(bench: Bench) -> str:
    details = await sound(bench)
    await bench.accept(*BATCH)
    await finish(bench)
    statuses = await bench.store.views.statuses(APP, [FIRST.id, SECOND.id])
    assert statuses == {FIRST.id: SENT, SECOND.id: SENT}
    assert all(len(receipt.attempts) <= 2 for detail in details.values() for receipt in detail.receipts)
    return "repeated and gone on with; sent"


SCENARIOS["whole life"] = Scenario(
    "accept, lease, settle, release, settle", nothing, nothing, _whole_life, _whole_life_was_killed
)

# Routed by one, sent by another.


async def _hand_over(bench: Bench) -> None:
    lease = bench.leased
    routed = [Settled(item.notification, (), targets(2), given_back=True) for item in lease.items]
    assert await bench.settle(lease, *routed) == []
    lease = await bench.lease()
    assert [len(item.open_targets or ()) for item in lease.items] == [2, 2, 2]
    parts = [Settled(item.notification, (sent(0, bench.now), sent(1, bench.now))) for item in lease.items]
    assert await bench.settle(lease, *parts) == []


async def _hand_over_was_killed(bench: Bench) -> str:
    details = await sound(bench)
    shapes = {tuple(receipt.status for receipt in detail.receipts) for detail in details.values()}
    assert len(shapes) == 1, "all of a settle or nothing"
    await finish(await bench.crash())
    details = await sound(bench)
    assert {receipt.attempt for detail in details.values() for receipt in detail.receipts} == {1}
    assert len(details) == 3
    match shapes.pop():
        case ():
            return "nothing settled; routed again"
        case (DeliveryStatus.PENDING, DeliveryStatus.PENDING):
            return "routed; sent by whoever comes next"
        case both:
            assert set(both) == {DeliveryStatus.SENT}
            return "sent"


SCENARIOS["hand over"] = Scenario(
    "leased … routed … handed over … sent … settled", accepted, lease_all, _hand_over, _hand_over_was_killed
)
