"""What a caller orders of notifications that exist, killed: the rows of the kill table on withdrawals and replays."""

from __future__ import annotations

import msgspec

from tests.amending import withdraw
from tests.contract.bench import APP, Bench, again, parked, sent, targets
from tests.contract.clock import START
from tests.contract.kills import Scenario, accepted, finish, known, lease_all, nothing, sound
from waypost.domain.amendment import NotOpen, Withdrawn
from waypost.domain.delivery import FailureClass
from waypost.domain.settlement import Dead
from waypost.domain.status import FINAL, NotificationStatus
from waypost.domain.time import DAY_MS, later
from waypost.ports.work import Accepted, NotReplayable, Replay, Settled

SENT, CANCELLED = NotificationStatus.SENT, NotificationStatus.CANCELLED
WHY = "cancelled by the caller"
DEAD = Dead("500", "away", FailureClass.RETRYABLE, letter=True)
ORDERED: dict[str, Scenario] = {}

# Withdrawing.


async def _open_in_every_way(bench: Bench) -> None:
    await accepted(bench)
    lease = await bench.take()
    retried, waiting = lease.items[1].notification, lease.items[2].notification
    parts = [
        Settled(lease.items[0].notification, given_back=True),
        Settled(retried, (sent(0, bench.now), again(1, bench.now)), targets(2)),
        Settled(waiting, (parked(0, bench.now, waiting.expires_at),), targets(1)),
    ]
    assert await bench.settle(lease, *parts) == []


async def _withdraw(bench: Bench) -> None:
    await withdraw(bench.worker, APP, [known(n).id for n in range(1, 4)], WHY, bench.now)


async def _withdraw_was_killed(bench: Bench) -> str:
    details = await sound(bench)
    ids = [known(n).id for n in range(1, 4)]
    were_open = {details[one].record.status not in FINAL for one in ids}
    assert len(were_open) == 1, "all of the call or nothing"
    answers = await withdraw(bench.worker, APP, ids, WHY, bench.now)
    bench.clock.advance(DAY_MS)
    assert await bench.leasable() == []
    assert list((await bench.store.views.statuses(APP, ids)).values()) == [CANCELLED, SENT, CANCELLED]
    await sound(bench)
    if were_open == {True}:
        assert {type(answer) for answer in answers} == {Withdrawn}
        return "open; the repeat withdraws"
    assert answers == [NotOpen(CANCELLED), NotOpen(SENT), NotOpen(CANCELLED)]
    return "withdrawn; the repeat says so"


ORDERED["withdraw"] = Scenario(
    "cancel at the same moment: waiting", _open_in_every_way, nothing, _withdraw, _withdraw_was_killed
)


async def _withdraw_leased_was_killed(bench: Bench) -> str:
    await sound(bench)
    leasable = await bench.leasable()
    statuses = set((await bench.store.views.statuses(APP, [known(n).id for n in range(1, 4)])).values())
    await sound(bench)
    if statuses == {CANCELLED}:
        assert leasable == []
        return "withdrawn; not sent by anybody else"
    assert len(leasable) == 3, "all of the call or nothing"
    return "open; leased again"


ORDERED["withdraw leased"] = Scenario(
    "cancel at the same moment: leased", accepted, lease_all, _withdraw, _withdraw_leased_was_killed
)

# Replaying.


async def _failed(bench: Bench) -> None:
    await accepted(bench)
    lease = await bench.take()
    dead = [msgspec.structs.replace(sent(n, bench.now), settlement=DEAD) for n in range(2)]
    parts = [Settled(item.notification, tuple(dead), targets(2)) for item in lease.items]
    assert await bench.settle(lease, *parts) == []


def _replays() -> list[Replay]:
    return [Replay(APP, known(n).id, START, later(START, DAY_MS)) for n in range(1, 4)]


async def _replay(bench: Bench) -> None:
    await bench.accept(*_replays())


async def _replay_was_killed(bench: Bench) -> str:
    details = await sound(bench)
    rounds = {detail.record.round for detail in details.values()}
    answers = await bench.accept(*_replays())
    assert len(await bench.leasable()) == 3
    await finish(await bench.crash())
    if rounds == {1}:
        assert {type(answer) for answer in answers} == {Accepted}
        return "failed still; the repeat starts the round"
    assert rounds == {2}, "all of the batch or nothing"
    assert set(answers) == {NotReplayable(known=True)}
    return "started; the repeat starts no other"


ORDERED["replay"] = Scenario("replay ordered … answered", _failed, nothing, _replay, _replay_was_killed)
