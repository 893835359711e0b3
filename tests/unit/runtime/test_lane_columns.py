"""What goes out and lands in columns ends as what goes one by one: in the store, at the gates, in the counts."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

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


async def outcome_of(folder: Path, seed: int, monkeypatch: pytest.MonkeyPatch, *, columns: bool) -> dict[str, Any]:
    """Send to all users at once; return what the store and the gates know afterwards."""
    bench = LaneBench(folder)
    said = answers(seed)

    def answer(delivery: Delivery) -> Outcome:
        return said[delivery.address.token]

    bench.apns.answer = bench.fcm.answer = answer
    bench.budgets = {Lane.NORMAL: random.Random(seed).choice([7, 1_000])}
    with monkeypatch.context() as patch:
        if not columns:
            patch.setattr(LaneGate, "is_calm", False)
            patch.setattr(LaneGate, "has_room_for", lambda gate, n: False)
        async with bench.running() as loop:
            for user in range(USERS):
                await bench.register(f"user-{user}", APNS.channel, FCM.channel)
            made = {f"user-{user}": await bench.accept(f"user-{user}") for user in range(USERS)}
            await bench.settled(loop)
        gates = bench.made.gates
        return {
            "receipts": {
                user: [_known(each) for each in (await bench.detail(its)).receipts] for user, its in made.items()
            },
            "states": {name: gates._circuits[name].state for name in (APNS, FCM)},
            "failures": {name: gates._circuits[name]._breaker.failures for name in (APNS, FCM)},
            "in_flight": gates.in_flight(),
            "rooms": {name: gates.of(Lane.NORMAL)[name].room() for name in (APNS, FCM)},
            "answers": {name: gates._circuits[name].concurrency._seen.answers for name in (APNS, FCM)},
            "sent": sorted(each.address.token for each in (*bench.apns.sent, *bench.fcm.sent)),
        }


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
