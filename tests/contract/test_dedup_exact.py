"""Keys are exact: over two days of random requests each answer is that of a table of all keys (requirements S1-77)."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import msgspec
import pytest

from tests.contract.bench import Bench, by_content, by_key, new_id, notification
from tests.shows import shows
from waypost.domain.dedup import Claim, ClaimKind
from waypost.domain.ids import NotificationId
from waypost.domain.time import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS, Instant
from waypost.ports.work import Acceptance, Accepted, Conflicting, Duplicate, NewNotification

pytestmark = pytest.mark.asyncio

REQUESTS = 1_200
BATCH = 30
THINGS = 60
"""So few things to say that most of it is said again, within its window and after."""
WINDOWS_MS = (5 * MINUTE_MS, HOUR_MS, DAY_MS)
STEPS_MS = (0, 1, SECOND_MS, 5 * MINUTE_MS, HOUR_MS, 7 * HOUR_MS)


@dataclass
class Keys:
    """All keys there ever were."""

    known: dict[bytes, tuple[Claim, NotificationId]] = field(default_factory=dict)

    def answer(self, arrival: NewNotification, now: Instant) -> Acceptance:
        """What must be answered."""
        made = arrival.notification.id
        for claim in sorted(arrival.claims, key=lambda each: each.kind is ClaimKind.CONTENT):
            before, first_id = self.known.get(claim.key, (claim, made))
            if first_id == made or before.until <= now:
                continue
            if claim.kind is ClaimKind.CONTENT:
                self._claim([each for each in arrival.claims if each is not claim], first_id)
                return Duplicate(first_id, made)
            return Duplicate(first_id) if before.body_hash == claim.body_hash else Conflicting(first_id)
        self._claim(arrival.claims, made)
        return Accepted(made)

    def _claim(self, claims: list[Claim] | tuple[Claim, ...], first_id: NotificationId) -> None:
        self.known |= {claim.key: (claim, first_id) for claim in claims}

    def forget(self, key: bytes, now: Instant) -> int:
        """How many windows that must end."""
        claim, _ = self.known.pop(key, (None, None))
        return int(claim is not None and claim.until > now)


def arrival(rng: random.Random, now: Instant) -> NewNotification:
    """One of the few things, under its key, its content or both."""
    body = f"thing {rng.randrange(THINGS)}"
    made = msgspec.structs.replace(notification(now, body=body), id=new_id(now))
    content = by_content(made, rng.choice(WINDOWS_MS))
    own = by_key(made, f"key {rng.randrange(THINGS)}" if rng.random() < 0.2 else body)
    return NewNotification(made, rng.choice([(content,), (own,), (content, own)]))


@shows("S1-77")
async def test_every_answer_is_that_of_a_table_of_all_keys(bench: Bench, rng: random.Random) -> None:
    """No duplicate gets through and nothing new is taken for one, in whichever slice of time its key lies."""
    keys, answered = Keys(), 0
    kinds: set[type] = set()
    while answered < REQUESTS:
        now = bench.clock.advance(rng.choice(STEPS_MS))
        batch = [arrival(rng, now) for _ in range(rng.randrange(1, BATCH))]
        expected = [keys.answer(each, now) for each in batch]
        assert await bench.accept(*batch) == expected
        answered += len(batch)
        kinds |= set(map(type, expected))
        if rng.random() < 0.2:
            key = rng.choice(sorted(keys.known))
            assert await bench.store.dedup.forget([key]) == keys.forget(key, now)
        if rng.random() < 0.1:
            await bench.store.dedup.drop_over()
    assert kinds == {Accepted, Duplicate, Conflicting}
