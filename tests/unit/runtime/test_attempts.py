"""What a lane remembers of attempts until it tells the metrics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from tests.unit.runtime.bench import FCM
from waypost.domain.notification import Lane
from waypost.domain.outcome import Refused, Taken
from waypost.runtime.attempts import CODES, OTHERS, Attempts
from waypost.telemetry import Metric, Silent


class Counted(Silent):
    """Sums by metric, failures by code, and the values observed."""

    def __init__(self) -> None:
        self.codes: Counter[str] = Counter()
        self.sums: Counter[Metric] = Counter()
        self.took_s: list[float] = []

    def count(self, metric: Metric, n: float = 1, /, **labels: str) -> None:
        """Add up."""
        self.sums[metric] += int(n)
        if metric is Metric.FAILED_ATTEMPTS:
            self.codes[labels["code"]] += int(n)

    def observe_all(self, metric: Metric, values: Sequence[float], /, **labels: str) -> None:
        """Keep them."""
        assert (metric, labels) == (Metric.DELIVERY_SECONDS, {"lane": "normal"})
        self.took_s += values


def test_codes_beyond_the_first_are_told_together() -> None:
    """Also later: those that were told by name stay so."""
    told = Counted()
    attempts = Attempts(Lane.NORMAL, told)
    for n in range(CODES + 10):
        attempts.add(FCM, Refused(f"made-up-{n}", ""), 0)
    attempts.publish()
    attempts.add(FCM, Refused("made-up-0", ""), 0)
    attempts.add(FCM, Refused("one more", ""), 0)
    attempts.publish()
    assert told.codes.pop(OTHERS) == 11
    assert told.codes == {f"made-up-{n}": 1 + (n == 0) for n in range(CODES)}


def test_what_was_told_is_not_told_again_and_no_time_is_below_0() -> None:
    """A provider may answer before its clock, or ours, says that the notification is there."""
    told = Counted()
    attempts = Attempts(Lane.NORMAL, told)
    attempts.add(FCM, Taken("id"), 1_500)
    attempts.add(FCM, Taken("id"), -3)
    attempts.publish()
    attempts.publish()
    assert told.took_s == [1.5, 0.0]


def test_what_goes_in_columns_is_counted_beside_all_attempts() -> None:
    told = Counted()
    attempts = Attempts(Lane.NORMAL, told)
    attempts.taken(FCM, [5, -1])
    attempts.add(FCM, Taken(), 7)
    attempts.publish()
    attempts.publish()
    assert told.sums == {Metric.ATTEMPTS: 3, Metric.PLAIN_ATTEMPTS: 2}
