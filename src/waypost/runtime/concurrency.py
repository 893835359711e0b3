"""Concurrency: the deliveries in flight at a provider, or part of it, by lane, under a limit that its answers set."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping

from waypost.domain.congestion import CongestionRules, Observed, adjusted, fallen, fresh
from waypost.domain.notification import Lane
from waypost.domain.outcome import Gone, Outcome, Refused, Taken, Throttled, Unanswered, Unreachable
from waypost.domain.time import Instant

ROUND_S = 0.05
"""Seconds of the shortest round."""
NEEDED = 7 / 8
"""The part of its share from which on a lane is held up by the limit: what is leased seldom fills the last places."""
NEEDED_AT_START = 1 / 2
"""The same in slow start, where the limit doubles: as Linux has it (net/tcp.h, tcp_is_cwnd_limited)."""
IDLE_ROUND_S = 1.0
"""Seconds of a round in which nothing is in flight; otherwise it lasts until there is an answer."""


class Handed:
    """A batch given to a sender at one time; *left* of its deliveries have no outcome yet."""

    __slots__ = ("at", "at_s", "left")

    def __init__(self, at: Instant, at_s: float, left: int) -> None:
        """Create the batch; *at* is wall time, *at_s* monotonic."""
        self.at = at
        self.at_s = at_s
        self.left = left


class Concurrency:
    """A counter of what is in flight, and of how much more may go; it learns from every answer, acts once a round.

    Each lane may fill its share of the limit and no more, so that lanes never wait for each other.
    """

    def __init__(self, budgets: Mapping[Lane, int], late_after_s: float) -> None:
        """Create the counter; *budgets* are each lane's upper limits; an answer is late after *late_after_s*."""
        most = sum(budgets.values())
        self._shares = {lane: budget / most for lane, budget in budgets.items()}
        self._lanes = dict.fromkeys(budgets, 0)
        self._flow = fresh(CongestionRules(most, late_after_s))
        self._share_out()
        self._refused: set[Lane] = set()
        self._seen = Observed()
        self._round_began_s = 0.0
        self._waiting: deque[Handed] = deque()
        """The batches handed over after the latest that was answered."""
        self._answered_s = -math.inf
        """The time when the latest batch that was answered had been handed over."""

    @property
    def limit(self) -> int:
        """How many deliveries may be in flight, all lanes together."""
        return int(self._flow.limit)

    @property
    def is_queued(self) -> bool:
        """Whether a queue stands at the provider."""
        return self._flow.is_queued

    def most(self, lane: Lane) -> int:
        """Return how many deliveries *lane* may have in flight."""
        return self._most[lane]

    def room(self, lane: Lane) -> int:
        """Return how many more deliveries of *lane* may go."""
        return max(0, self._most[lane] - self._lanes[lane])

    def take(self, lane: Lane, n: int = 1) -> None:
        """Count *n* more deliveries of *lane* in flight."""
        in_flight = self._lanes[lane] = self._lanes[lane] + n
        if in_flight >= self._needed[lane]:
            self._seen.is_limited = True

    def give_back(self, lane: Lane, n: int = 1) -> None:
        """Count *n* deliveries less; the count may be lost where the place was somebody else's since."""
        self._lanes[lane] = max(0, self._lanes[lane] - n)

    def refused(self, lane: Lane) -> None:
        """Note that a delivery of *lane* is parked because of the limit, under the condition that its lanes share."""
        self._refused.add(lane)

    def nothing_waits(self) -> None:
        """Note that no parked delivery is left in the store."""
        self._refused.clear()

    def room_for_parked(self) -> int:
        """Return how many parked deliveries may come back: as many as the roomiest of their lanes has room for."""
        return max(self.room(lane) for lane in self._refused or self._lanes)

    def handed(self, batch: Handed) -> None:
        """Note that the sender was given *batch*."""
        self._waiting.append(batch)

    def landed(self, outcome: Outcome, batch: Handed, now_s: float) -> None:
        """Learn from the outcome of one of *batch*."""
        if isinstance(outcome, (Taken, Gone)):
            self.answered(1, batch, now_s)
        elif isinstance(outcome, (Unanswered, Unreachable)) or (isinstance(outcome, Throttled) and outcome.whole):
            self._seen.overloads += 1
        elif not isinstance(outcome, Refused):  # we refuse some ourselves, without sending
            self._answered_s = max(self._answered_s, batch.at_s)

    def answered(self, n: int, batch: Handed, now_s: float) -> None:
        """Learn that *n* of *batch* reached the provider, and how quickly."""
        seen = self._seen
        seen.answers += n
        seen.quickest_s = min(seen.quickest_s, now_s - batch.at_s)
        self._answered_s = max(self._answered_s, batch.at_s)

    def tick(self, now_s: float, stalled_s: float) -> None:
        """Adjust the limit where a round is over; for *stalled_s* this process stood still since the last tick."""
        seen = self._seen
        if stalled_s:
            seen.stalled_s += stalled_s
            for batch in self._waiting:
                batch.at_s += stalled_s
        used = max(in_flight / self._shares[lane] for lane, in_flight in self._lanes.items())
        seen.most_used = max(seen.most_used, used)
        if seen.answers:
            least_s = max(ROUND_S, seen.quickest_s)
        elif seen.overloads:
            least_s = ROUND_S
        else:
            least_s = math.inf if used else IDLE_ROUND_S
        if now_s - self._round_began_s >= least_s:
            self._flow = adjusted(self._flow, seen, now_s)
            self._share_out()
            self._seen = Observed()
            self._round_began_s = now_s

    def is_late(self, now_s: float) -> bool:
        """Tell whether an answer is overdue, and nothing that was handed over afterwards was answered.

        Where later ones are answered it is that message's own misfortune and says nothing of the others.
        """
        waiting = self._waiting
        while waiting and (not waiting[0].left or waiting[0].at_s <= self._answered_s):
            waiting.popleft()
        return bool(waiting) and now_s - waiting[0].at_s >= self._flow.rules.late_after_s

    def is_past(self, batch: Handed) -> bool:
        """Tell whether something that was handed over after *batch* has been answered."""
        return batch.at_s < self._answered_s

    def slow_down(self, now_s: float) -> None:
        """Lower the limit because an answer is overdue, and watch only what is handed over from now on."""
        self._waiting.clear()
        self._flow = fallen(self._flow, now_s)
        self._share_out()

    def _share_out(self) -> None:
        part = NEEDED_AT_START if self._flow.is_starting else NEEDED
        self._most = {lane: max(1, round(self._flow.limit * share)) for lane, share in self._shares.items()}
        self._needed = {lane: math.ceil(most * part) for lane, most in self._most.items()}
