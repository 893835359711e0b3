"""A process is killed while it submits what a schedule says."""

from __future__ import annotations

from tests.contract.bench import APP, Bench
from tests.contract.kills import Scenario, finish, sound
from tests.contract.scheduling import ZURICH, ground_on, submitted, weekly
from waypost.domain.local_time import instant_at, parse_local
from waypost.features.schedules.sending import send_due

TIME = "2027-03-15T09:00"


async def _prepare(bench: Bench) -> None:
    assert await ground_on(bench).store.schedules.add(weekly(bench), bench.now)


async def _is_due(bench: Bench) -> None:
    bench.clock.advance(instant_at(parse_local(TIME), ZURICH) - bench.now)


async def _send(bench: Bench) -> None:
    await send_due(ground_on(bench))


async def _send_was_killed(bench: Bench) -> str:
    await _is_due(bench)
    ground = ground_on(bench)
    (before,) = await ground.store.schedules.page(APP, "", 1)
    found = len(await submitted(bench))
    bench.clock.advance(60_000)
    await send_due(ground)
    await send_due(ground)
    (made,) = await submitted(bench)
    (after,) = await ground.store.schedules.page(APP, "", 1)
    assert after.last is not None
    assert (after.last.local, after.last.id, after.sent, after.missed) == (TIME, made.id, 1, 0)
    assert (after.following, after.claimed) == ("2027-03-22T09:00", None)
    await finish(bench)
    await sound(bench)
    match before.claimed, before.last, found:
        case None, None, 0:
            return "nothing; submitted by whoever comes next"
        case _, None, 0:
            return "claimed; submitted by whoever comes next"
        case _, None, 1:
            return "submitted; the repeat gets the same id"
        case None, _, 1:
            return "left behind"
        case seen:
            raise AssertionError(seen)


SCHEDULED = {
    "schedule": Scenario("due … claimed … submitted … left behind", _prepare, _is_due, _send, _send_was_killed),
}
