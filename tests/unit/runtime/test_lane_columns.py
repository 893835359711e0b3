"""What goes out and lands in columns ends as what goes one by one: in the store, at the gates, in the counts."""

from __future__ import annotations

import random
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.unit.runtime.bench import APNS, FCM, LaneBench
from waypost.domain.delivery import Delivery
from waypost.domain.notification import Lane
from waypost.domain.outcome import (
    CredentialRejected,
    Gone,
    Outcome,
    Reach,
    Refused,
    Taken,
    Throttled,
    Unanswered,
    Unreachable,
)
from waypost.domain.status import DeliveryStatus
from waypost.runtime.circuits import Circuit
from waypost.runtime.lane_gate import LaneGate

pytestmark = pytest.mark.asyncio

USERS = 12
BAD: tuple[Outcome, ...] = (
    Gone("gone"),
    Refused("no", "never"),
    CredentialRejected("denied", "this device", Reach.DEVICE),
    Throttled("slow", 1_000),
    Unanswered("timeout", "no answer"),
    Unreachable("away", "not there"),
)


def answers(seed: int) -> dict[str, Outcome]:
    """Mostly taken, by the token: what each device's provider says, seldom or often something else."""
    chance = random.Random(seed)
    share = chance.choice([0.0, 0.05, 0.3, 0.9])
    tokens = [f"token-user-{user}-{channel}" for user in range(USERS) for channel in ("apns", "fcm")]
    return {
        token: chance.choice(BAD) if chance.random() < share else Taken(f"id of {token}", chance.choice(["", "note"]))
        for token in tokens
    }


def part_of(delivery: Delivery, parts: int) -> str:
    """The part of the provider that a user's device hangs on: one of so many."""
    return f"part {int(delivery.address.token.split('-')[2]) % parts}"


async def outcome_of(
    folder: Path, seed: int, monkeypatch: pytest.MonkeyPatch, *, columns: bool, parts: int = 0
) -> dict[str, Any]:
    """Send to all users at once, and once more; return what the store and the gates know afterwards.

    With *parts*, FCM has so many, which fail apart.
    """
    bench = LaneBench(folder)
    if parts:
        scope_of = partial(part_of, parts=parts)
        bench.fcm.capabilities = msgspec.structs.replace(bench.fcm.capabilities, scope_of=scope_of, fails_apart=True)
    said = answers(seed)

    def answer(delivery: Delivery) -> Outcome:
        return said[delivery.address.token]

    bench.apns.answer = bench.fcm.answer = answer
    bench.budgets = {Lane.NORMAL: random.Random(seed).choice([7, 1_000])}
    with monkeypatch.context() as patch:
        if not columns:
            patch.setattr(LaneGate, "is_calm", lambda gate, part: False)
            patch.setattr(LaneGate, "parts_with_room", lambda gate, deliveries: None)
        async with bench.running() as loop:
            for user in range(USERS):
                await bench.register(f"user-{user}", APNS.channel, FCM.channel)
            made = [await bench.accept(f"user-{user}") for user in range(USERS)]
            await bench.settled(loop)
            made += [await bench.accept(f"user-{user}") for user in range(USERS)]
            await bench.settled(loop)
        gates = bench.made.gates
        return {
            "receipts": [[_known(each) for each in (await bench.detail(its)).receipts] for its in made],
            "states": {name: gates._circuits[name].state for name in (APNS, FCM)},
            "failures": {name: gates._circuits[name]._breaker.failures for name in (APNS, FCM)},
            "in_flight": gates.in_flight(),
            "rooms": {name: gates.of(Lane.NORMAL)[name].room() for name in (APNS, FCM)},
            "answers": {name: gates._circuits[name].concurrency._seen.answers for name in (APNS, FCM)},
            "parts": [_known_of(each) for scopes in gates._scopes.values() for each in scopes._circuits.values()],
            "sent": sorted(each.address.token for each in (*bench.apns.sent, *bench.fcm.sent)),
        }


def _known_of(part: Circuit) -> tuple[Any, ...]:
    """Return what the circuit of a part has learned, and who is counted in flight there."""
    concurrency = part.concurrency
    learned = part.scope, part.place, part.state, part._breaker.failures, part.in_flight, part._throttled
    return *learned, dict(concurrency._lanes), msgspec.structs.astuple(concurrency._seen), concurrency._answered_s


def _known(receipt: Any) -> tuple[Any, ...]:
    """What a receipt says beside the notification's id, which is made by chance."""
    fields = ("n", "device_id", "channel", "status", "attempt", "retries", "throttles", "due_at", "parked")
    more = ("provider_id", "code", "reason", "dead", "sent_at", "resolved_at", "attempts")
    return tuple(getattr(receipt, name) for name in (*fields, *more))


@pytest.mark.parametrize("seed", range(24))
async def test_both_ways_end_alike(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Mixed outcomes in one turn of the loop keep their order: a breaker hears of them as they came."""
    in_columns = await outcome_of(tmp_path / "columns", seed, monkeypatch, columns=True)
    one_by_one = await outcome_of(tmp_path / "one by one", seed, monkeypatch, columns=False)
    assert in_columns == one_by_one
    assert len(in_columns["sent"]) > 0


@pytest.mark.parametrize("seed", range(12))
async def test_both_ways_end_alike_where_parts_fail_apart(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = (1, 3, USERS)[seed % 3]
    in_columns = await outcome_of(tmp_path / "columns", seed, monkeypatch, columns=True, parts=parts)
    one_by_one = await outcome_of(tmp_path / "one by one", seed, monkeypatch, columns=False, parts=parts)
    assert in_columns == one_by_one
    assert len(in_columns["parts"]) == parts


async def test_parts_that_are_known_and_well_go_in_columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first round makes the circuits of the parts; the second asks and tells each gate once for all."""
    bench = LaneBench(tmp_path / "worker_slots")
    scope_of = partial(part_of, parts=3)
    bench.fcm.capabilities = msgspec.structs.replace(bench.fcm.capabilities, scope_of=scope_of, fails_apart=True)
    async with bench.running() as loop:
        for user in range(USERS):
            await bench.register(f"user-{user}", APNS.channel, FCM.channel)
            await bench.accept(f"user-{user}")
        await bench.settled(loop)
        with monkeypatch.context() as patch:
            patch.delattr(LaneGate, "admit")
            patch.delattr(LaneGate, "done")
            made = [await bench.accept(f"user-{user}") for user in range(USERS)]
            await bench.settled(loop)
    for its in made:
        assert set(bench.statuses(its).values()) == {DeliveryStatus.SENT}
