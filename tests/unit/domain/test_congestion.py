"""The limit on what is in flight, against simulated providers: a simulation of queues in steps of ten milliseconds."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

import msgspec
import pytest

from waypost.domain.congestion import CongestionRules, Flow, Observed, adjusted, fallen, fresh

STEP_S = 0.01
TICK_S = 0.05
MOST = 1_000
RULES = CongestionRules(MOST)


@dataclass
class Provider:
    """Works requests off in order, *per_s* at a time, and answers each *base_s* after that at the earliest."""

    per_s: Callable[[float], float]
    base_s: float = 0.02
    queue: deque[tuple[float, int]] = field(default_factory=deque)
    answers: deque[tuple[float, float, int]] = field(default_factory=deque)
    credit: float = 0.0
    idle_steps: int = 0
    longest_queue: int = 0

    def step(self, now_s: float) -> None:
        """Take its next requests."""
        self.credit += self.per_s(now_s) * STEP_S
        self.longest_queue = max(self.longest_queue, len(self.queue))
        while self.credit >= 1 and self.queue:
            self.credit -= 1
            sent_s, worker = self.queue.popleft()
            self.answers.append((max(now_s, sent_s + self.base_s), sent_s, worker))
        if not self.queue:
            self.idle_steps += self.credit >= 1
            self.credit = min(self.credit, 1.0)


@dataclass
class Worker:
    """Sends as much as its limit allows, out of a backlog without end."""

    flow: Flow
    in_flight: int = 0
    seen: Observed = field(default_factory=Observed)
    round_s: float = 0.0
    answer_times: list[float] = field(default_factory=list)
    later_answer_times: list[float] = field(default_factory=list)
    """Of what was sent after the first half minute."""

    def send(self, provider: Provider, now_s: float, number: int, wanted: int) -> int:
        """Send what there is room for."""
        room = int(self.flow.limit) - self.in_flight
        going = max(0, min(room, wanted))
        provider.queue.extend([(now_s, number)] * going)
        self.in_flight += going
        self.seen.is_limited |= wanted >= room
        self.seen.most_used = max(self.seen.most_used, self.in_flight)
        return going

    def answered(self, sent_s: float, now_s: float) -> None:
        """Count an answer."""
        self.in_flight -= 1
        self.answer_times.append(now_s - sent_s)
        if sent_s > 30:
            self.later_answer_times.append(now_s - sent_s)
        self.seen.answers += 1
        self.seen.quickest_s = min(self.seen.quickest_s, now_s - sent_s)

    def tick(self, now_s: float) -> None:
        """End the round where a round trip has passed."""
        if now_s - self.round_s >= max(TICK_S, 0.0 if math.isinf(self.seen.quickest_s) else self.seen.quickest_s):
            self.flow = adjusted(self.flow, self.seen, now_s)
            self.seen, self.round_s = Observed(), now_s


def simulated(
    provider: Provider,
    *,
    workers: int = 1,
    for_s: float = 60.0,
    wanted: Callable[[float], int] = lambda now_s: 10**9,
) -> list[Worker]:
    """Let *workers* send to *provider* for some time."""
    crew = [Worker(fresh(RULES)) for _ in range(workers)]
    for step in range(int(for_s / STEP_S)):
        now_s = step * STEP_S
        provider.step(now_s)
        while provider.answers and provider.answers[0][0] <= now_s:
            _, sent_s, number = provider.answers.popleft()
            crew[number].answered(sent_s, now_s)
        if step % round(TICK_S / STEP_S) == 0:
            for number, worker in enumerate(crew):
                worker.tick(now_s)
                worker.send(provider, now_s, number, wanted(now_s))
    return crew


@pytest.mark.parametrize("workers", [1, 2, 4])
@pytest.mark.parametrize("per_s", [40, 200, 1_000, 4_400])
def test_a_slow_provider_is_kept_busy_and_answers_far_below_the_deadline(per_s: int, workers: int) -> None:
    """It idles for less than 5 % of the time; only the first burst, of an unknown provider, waits for longer."""
    provider = Provider(lambda now_s: per_s)
    crew = simulated(provider, workers=workers, for_s=60)
    assert provider.idle_steps * STEP_S < 0.05 * 60
    assert max(took_s for worker in crew for took_s in worker.answer_times) < max(
        3.0, 1.5 * workers * RULES.start / per_s
    )
    assert max(took_s for worker in crew for took_s in worker.later_answer_times) < 5.0


def test_a_provider_that_answers_all_at_once_gets_the_most() -> None:
    """100 ms away and without a queue: the ceiling is reached within seconds, and kept."""
    (worker,) = simulated(Provider(lambda now_s: 10**9, base_s=0.1), for_s=3)
    assert worker.flow.limit == MOST


@pytest.mark.parametrize("base_s", [0.3, 1.5, 3.0])
def test_a_provider_far_away_is_not_taken_for_a_slow_one(base_s: float) -> None:
    """Its answer time does not grow with what is in flight."""
    (worker,) = simulated(Provider(lambda now_s: 10**9, base_s=base_s), for_s=90)
    assert worker.flow.limit > 0.4 * MOST


def test_a_provider_that_stops_for_15_s_is_given_no_more_than_it_had() -> None:
    """What it has when it stops is what waits: no answer, no growth."""
    provider = Provider(lambda now_s: 0 if 20 <= now_s < 35 else 200)
    crew = simulated(provider, workers=2, for_s=60)
    assert max(took_s for worker in crew for took_s in worker.answer_times) < 20
    assert provider.longest_queue < 500


def test_a_standing_queue_does_not_become_the_measure() -> None:
    """After ten minutes at its limit a provider still answers within two seconds, whoever else sends to it."""
    crew = simulated(Provider(lambda now_s: 100), workers=2, for_s=600)
    assert max(took_s for worker in crew for took_s in worker.answer_times[-1_000:]) < 2.0


def test_a_provider_that_becomes_quicker_is_followed() -> None:
    """From 40 a second to 2,000: it is kept busy within half a minute."""
    provider = Provider(lambda now_s: 40 if now_s < 30 else 2_000)
    (worker,) = simulated(provider, for_s=90)
    assert len(worker.answer_times) > 30 * 40 + 0.8 * 60 * 2_000


def test_a_limit_that_is_not_used_is_forgotten() -> None:
    """After a minute of little traffic the next burst begins small again."""
    (worker,) = simulated(Provider(lambda now_s: 5_000), for_s=80, wanted=lambda now_s: 10**9 if now_s < 10 else 1)
    assert worker.flow.limit <= RULES.start


def test_an_overload_takes_a_part_once_a_round_trip() -> None:
    flow = fresh(RULES)
    once = adjusted(flow, Observed(answers=5, quickest_s=0.01, overloads=3), 1.0)
    assert once.limit == pytest.approx(0.7 * flow.limit)
    assert fallen(once, 1.1) is once
    assert fallen(once, 2.0).limit == pytest.approx(0.49 * flow.limit)


def test_the_limit_keeps_its_bounds() -> None:
    flow = fresh(CongestionRules(most=20))
    assert flow.limit == 20
    for n in range(100):
        flow = fallen(flow, 10.0 * n)
    assert flow.limit == 16
    assert fresh(CongestionRules(most=3)).limit == 3


def test_time_in_which_this_process_stood_still_is_not_the_providers() -> None:
    flow = fresh(RULES)
    kept = adjusted(flow, Observed(answers=5, quickest_s=8.02, stalled_s=8.0, is_limited=True), 1.0)
    assert kept.limit > flow.limit


def test_nothing_is_learned_of_the_distance_while_this_process_stood_still() -> None:
    """Answers that came at once after the stall less the stall are none at all: a far provider would seem congested."""
    far = adjusted(msgspec.structs.replace(fresh(RULES), base_s=5.0), Observed(answers=5, quickest_s=0.8), 1.0)
    stalled = adjusted(far, Observed(answers=5, quickest_s=0.81, stalled_s=3.0, is_limited=True), 2.0)
    after = adjusted(stalled, Observed(answers=5, quickest_s=0.82, is_limited=True), 3.0)
    assert stalled.base_s == 0.8
    assert after.limit > stalled.limit > far.limit
