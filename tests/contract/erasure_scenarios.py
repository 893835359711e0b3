"""A process killed while it forgets a user, between any two statements of any page."""

from __future__ import annotations

import msgspec

from tests.amending import withdraw
from tests.contract.bench import APP, Bench, sent
from tests.contract.clock import START
from tests.contract.kills import Scenario, known, nothing, sound
from waypost.domain.ids import UserId
from waypost.domain.notification import Notification
from waypost.domain.status import FINAL
from waypost.domain.time import MINUTE_MS
from waypost.pipeline.erase import WHY, erase
from waypost.ports.erasure import Erasure
from waypost.ports.views import HistoryQuery

HER = UserId("her")
ORDER = Erasure(known(9).id, APP, HER, UserId("erased-0"), START)


def hers(n: int) -> Notification:
    """The *n*-th thing she was told."""
    return msgspec.structs.replace(known(n), user_id=HER)


async def _told(bench: Bench) -> None:
    """Two that are final, one that is open, and what somebody else was told."""
    for n in (1, 2):
        await bench.accept(hers(n))
        lease, item = await bench.take_one()
        assert await bench.settle_first(lease, item, 2, sent(0, bench.now), sent(1, bench.now)) == []
    await bench.accept(hers(3), known(4))


async def _erase(bench: Bench) -> None:
    """As the stage does, in pages of one."""
    erasures = bench.store.erasures_of(bench.worker)
    order = await erasures.ask(ORDER)
    await erasures.strike(order)
    await withdraw(bench.worker, APP, await erasures.unfinished(order, 1), WHY, bench.now)
    while await erasures.blank(order, 1):
        pass
    await erasures.finish(order, bench.now)


async def _erase_was_killed(bench: Bench) -> str:
    erasures = bench.store.erasures_of(bench.worker)
    standing = list(await erasures.standing(10))
    left = await bench.store.views.history(HistoryQuery(APP, HER))
    await sound(bench)
    if not standing and left:
        await erasures.ask(ORDER)
    for order in await erasures.standing(10):
        for _ in range(3):
            bench.clock.advance(MINUTE_MS)
            await erase(
                erasures, bench.store.devices, bench.worker, order, bench.now, bench.store.strikes_of(bench.worker)
            )
    assert list(await erasures.standing(10)) == []
    details = await sound(bench)
    assert len(details) == 4
    for detail in details.values():
        told = detail.record.notification
        assert told.user_id == (ORDER.tombstone if told.id != known(4).id else "u4")
        assert (told.content.body is None) is (told.id != known(4).id)
        assert detail.record.status in FINAL or told.id == known(4).id
    if not standing:
        return "nothing was asked for" if left else "it was carried out"
    return f"{len(left)} of 3 know her still; the rest follows"


ERASING = {
    "erase": Scenario("asked … withdrawn … page … page … carried out", _told, nothing, _erase, _erase_was_killed)
}
