"""A day of requests, many of them said again, late and out of order; and what must be answered to each."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.journeys.harness import Json

MINUTE_S, DAY_S = 60, 86_400
A_DAY_ONCE: Json = {"defaults": {"dedup_window_s": DAY_S}}
"""The settings of an app in which the same is sent once in a day, unless a caller says otherwise."""
MOMENTS_MIN = (0, 1, 20, 21, 60, 300, 301, 330, 720, 1000, 1001, 1030, 1300, 1380, 1415, 1416, 1480, 1481, 1530, 1801)
"""When something is said, in minutes: a day and a bit.

Any two lie far enough from the end of any window that a slow machine decides nothing.
"""
FORGETTING_MIN = 1031
"""When the windows of some things are ended before their time."""
OTP_S, TTL_S, ASKED_S = 300, 600, 300
CALLERS = ("tests", "shop")
DOORS = ("rest", "batch", "batch", "grpc")


@dataclass(frozen=True)
class Said:
    """One request."""

    at_s: int
    caller: str
    door: str
    body: Json


@dataclass(frozen=True)
class Expected:
    """What must be answered to it."""

    first: int
    """The place of the request whose id is answered."""
    is_conflict: bool = False
    forgotten: int = 0


@dataclass
class Keys:
    """All that is known: until when, for which request, and what that said."""

    known: dict[tuple[str, ...], tuple[int, int, Json]] = field(default_factory=dict)

    def expected(self, n: int, said: Said) -> Expected:
        """The answer to request *n*; from then on its keys are known."""
        body = {name: value for name, value in said.body.items() if name != "idempotency_key"}
        claims = windows(said)
        open_ = [key for key in claims if key in self.known and self.known[key][0] > said.at_s]
        if said.door == "forget":
            self.known = {key: value for key, value in self.known.items() if key not in claims}
            return Expected(n, forgotten=len(open_))
        first = n
        if open_:
            _, first, before = self.known[open_[0]]
            if open_[0][0] == "key":
                return Expected(first, is_conflict=body != before)
            del claims[open_[0]]
        self.known |= {key: (said.at_s + window_s, first, body) for key, window_s in claims.items()}
        return Expected(first)


def windows(said: Said) -> dict[tuple[str, ...], int]:
    """The keys of a request and for how long they are claimed, the caller's own before that of its content."""
    body = said.body
    found: dict[tuple[str, ...], int] = {}
    key = body.get("idempotency_key")
    if key is not None:
        found["key", said.caller, key] = DAY_S
    usual_s = OTP_S if body.get("type") == "otp" else DAY_S
    window_s = min(body.get("dedup_window", usual_s), body.get("ttl", DAY_S))
    if window_s:
        told = {name: value for name, value in body.items() if name not in {"idempotency_key", "dedup_window"}}
        found["content", said.caller, json.dumps(told, sort_keys=True)] = window_s
    return found


def day(rng: random.Random, users: Sequence[str], things: int) -> list[Said]:
    """All requests, by moments; in one moment whatever may come first, the same is to be answered."""
    said: list[Said] = []
    for n in range(things):
        said += _thing(rng, n, rng.choice(users), users)
    by_moment: dict[int, list[Said]] = {}
    for each in said:
        by_moment.setdefault(each.at_s, []).append(each)
    for moment in by_moment.values():
        rng.shuffle(moment)
    return [each for at_s in sorted(by_moment) for each in _certain(by_moment[at_s])]


def _thing(rng: random.Random, n: int, user: str, users: Sequence[str]) -> list[Said]:
    """One thing, said two to five times at different moments, each time once or more, through any door."""
    plain: Json = {"user_id": user, "title": f"Thing {n}", "data": {"n": n}}
    own = plain | {"idempotency_key": f"key {n}".replace(" ", "-")}
    ways: list[list[Json]] = [
        [plain],
        [plain | {"type": "otp"}],
        [plain | {"ttl": TTL_S}],
        [own],
        [own, own | {"title": "Something else"}],
        [own | {"dedup_window": ASKED_S}, plain | {"idempotency_key": f"other-{n}", "dedup_window": ASKED_S}],
        [plain | {"user_id": each} for each in rng.sample(list(users), 2)],
    ]
    bodies = rng.choice(ways)
    callers = CALLERS if rng.random() < 0.2 else CALLERS[:1]
    moments = rng.sample(MOMENTS_MIN, rng.randrange(2, 6))
    made = [
        Said(at * MINUTE_S, rng.choice(callers), rng.choice(DOORS), rng.choice(bodies))
        for at in moments
        for _ in range(rng.choice((1, 1, 2, 3)))
    ]
    if rng.random() < 0.1:
        made.append(Said(FORGETTING_MIN * MINUTE_S, callers[0], "forget", bodies[0]))
    return made


def _certain(moment: list[Said]) -> list[Said]:
    """Without what says something else under a key of the same moment."""
    bodies: dict[tuple[str, str], Json] = {}
    kept = []
    for said in moment:
        key = said.body.get("idempotency_key")
        if key is None or bodies.setdefault((said.caller, key), said.body) == said.body:
            kept.append(said)
    return kept
