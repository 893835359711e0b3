"""Gates and circuits by themselves: what is counted, what may come back, and how slowly a provider is filled again."""

from __future__ import annotations

import pytest

from tests.contract.bench import Bench, notification
from tests.contract.stores import MemoryUnderTest
from tests.shows import shows
from tests.unit.domain.made import delivery
from waypost.domain import settlement
from waypost.domain.breaker import BreakerRules, BreakerState
from waypost.domain.channel import Channel
from waypost.domain.credential import CredentialId
from waypost.domain.fallback import Fallbacks
from waypost.domain.ids import AppId
from waypost.domain.notification import Lane
from waypost.domain.outcome import CredentialRejected, Taken, Unreachable
from waypost.domain.time import Instant
from waypost.ports.sender import Capabilities
from waypost.runtime.circuits import Circuit
from waypost.runtime.concurrency import Concurrency, Handed
from waypost.runtime.gates import Gates
from waypost.runtime.parked import ParkedWork
from waypost.telemetry import Silent

APNS = CredentialId(AppId("demo"), Channel("apns"))
ROOM, BREAKER = f"room:normal/{APNS}", f"breaker:{APNS}"
RAMP = 2
RULES = BreakerRules(failures_to_open=1, probe_after_s=5.0, ramp_start=RAMP)


@pytest.fixture
def gates() -> Gates:
    """One sender; each lane may have four in flight."""
    capabilities = Capabilities(Channel("apns"), 10_000, 1_000, 4096)
    return Gates({APNS: capabilities}, dict.fromkeys(Lane, 4), RULES, Silent())


@pytest.mark.parametrize("condition", [ROOM, BREAKER])
def test_what_is_parked_here_or_found_there_may_come_back(gates: Gates, condition: str) -> None:
    """The store is asked for what was parked here or found there, until it has said that there is nothing."""
    gates.parked(condition)
    assert gates.lifted().keys() == {condition}
    gates.nothing_came(gates.lifted())
    assert gates.lifted() == {}
    gates.found_parked({condition})
    assert gates.lifted().keys() == {condition}


@pytest.mark.parametrize("condition", [ROOM, BREAKER])
def test_what_waits_for_a_refused_account_may_come_back_for_one_that_stands_in(condition: str) -> None:
    """Whatever it waits for: a place, the breaker."""
    backup = CredentialId(AppId("demo"), Channel("apns"), "backup")
    capabilities = Capabilities(Channel("apns"), 10_000, 1_000, 4096)
    senders = dict.fromkeys([APNS, backup], capabilities)
    gates = Gates(senders, dict.fromkeys(Lane, 4), RULES, Silent(), fallbacks=Fallbacks.of([[APNS, backup]]))
    gate = gates.of(Lane.NORMAL)[APNS]
    assert gate.admit(delivery()) is None
    gate.done(delivery(), CredentialRejected("20003", "the account is refused"), Handed(Instant(0), 0.0, 1), 0.0)
    gates.parked(condition)
    assert gate.room() == 0
    assert gates.lifted() == {condition: 4}


@pytest.mark.parametrize("has_parts", [False, True], ids=["whole", "in parts"])
def test_at_the_start_the_store_is_asked_for_no_condition(*, has_parts: bool) -> None:
    """Each is a search on the event loop: with 500 apps all of them take longer than a worker may be silent."""
    scope_of = (lambda _: "part") if has_parts else None
    capabilities = Capabilities(Channel("apns"), 10_000, 1_000, 4096, scope_of)
    credentials = [CredentialId(AppId(f"app{n}"), Channel("apns")) for n in range(500)]
    gates = Gates(dict.fromkeys(credentials, capabilities), {}, RULES, Silent())
    assert gates.lifted() == {}


def test_what_was_called_off_leaves_its_place_to_another(gates: Gates) -> None:
    """As often as that happens."""
    gate, room = gates.of(Lane.NORMAL)[APNS], gates.of(Lane.NORMAL)[APNS].room()
    for _ in range(20):
        assert gate.admit(delivery()) is None
        assert gate.room() == room - 1
        gate.forfeit(delivery())
    assert (gate.room(), gates.in_flight()[APNS]) == (room, 0)


def test_a_provider_that_comes_back_is_filled_slowly() -> None:
    """After the first good probe a few, then twice as many each time that those came through."""
    circuit = Circuit(APNS, RULES, Silent(), Concurrency(dict.fromkeys(Lane, 100), 10.0))
    circuit.in_flight = 1
    circuit.done(Unreachable("503", "away"), 0.0, 100)
    assert (circuit.state, circuit.room()) == (BreakerState.OPEN, 0)
    circuit.tick(5.0, 0.0)
    assert (circuit.state, circuit.room()) == (BreakerState.HALF_OPEN, 1)
    circuit.in_flight = 1
    circuit.done(Taken("id"), 6.0, 100)
    assert (circuit.state, circuit.room()) == (BreakerState.CLOSED, RAMP)
    circuit.in_flight = RAMP
    for _ in range(RAMP):
        circuit.done(Taken("id"), 7.0, 100)
    assert circuit.room() == 2 * RAMP


@pytest.mark.asyncio
async def test_what_others_parked_is_found_once_it_is_expected(gates: Gates) -> None:
    """The store is not asked before each release, but by whoever took shards over, and now and then."""
    store = MemoryUnderTest()
    bench = Bench(store, (await store.open_workers(1))[0])
    parked = ParkedWork(gates, bench.worker, ("rule:quiet",))
    assert await parked.lifted() == gates.lifted()
    made = notification(bench.now)
    await bench.routed(made, settlement.Parked("rate:normal/demo/gone", made.expires_at))
    put_off = notification(bench.now)
    await bench.routed(put_off, settlement.Parked("rule:quiet", put_off.expires_at))
    assert await parked.lifted() == gates.lifted()
    parked.expect()
    lifted = await parked.lifted()
    assert "rate:normal/demo/gone" in lifted
    assert "rule:quiet" not in lifted, "what a rule put off ends at the time that it gave"


@shows("S1-136")
def test_a_lane_that_is_full_takes_no_room_of_another(gates: Gates) -> None:
    """However many silent ones are in flight: visible ones may go as many as ever."""
    silent, visible = gates.of(Lane.SILENT)[APNS], gates.of(Lane.NORMAL)[APNS]
    before = visible.room()
    while silent.admit(delivery()) is None:
        assert silent.room() < before
    assert (silent.room(), visible.room()) == (0, before)
