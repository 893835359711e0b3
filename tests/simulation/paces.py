"""The paces of a simulated worker: its ticks are fewer, so that a simulated second costs less, and its spans shorter.

Nothing else of the runtime is changed. What counts is how the spans relate: an answer comes or is given up well within
a lease, a lease ends well within the time to live of most.
"""

from __future__ import annotations

from waypost.domain.breaker import BreakerRules
from waypost.domain.retry import Jitter, RetryPolicy, RetryRules
from waypost.runtime import duties, lane, leasing, ticker, worker
from waypost.runtime.timer import TimerSettings

LEASE_S = 8.0
ANSWER_S = 2.0
"""The seconds after which a sender gives an answer up."""
GIVEN_UP_S = 2.5
"""The seconds after which a worker that stands still or is cut off may be taken for dead: a lease less all that a
delivery takes."""
RETRY = RetryRules(RetryPolicy("simulated", max_retries=3, base_ms=500, cap_ms=4_000, jitter=Jitter.ADD30))
TIMER = TimerSettings(period_s=1.0)
BREAKER = BreakerRules(failures_to_open=4, failing_for_s=3.0, probe_after_s=1.0, probe_cap_s=4.0, ramp_start=2)


def hurry() -> None:
    """Set the paces of this process's runtime."""
    leasing.LEASE_MS = int(LEASE_S * 1000)
    lane.SLICE = 1
    ticker._PHASE_S = 0.0  # of a process, and so another one each time
    worker.HEARTBEAT_S = 10.0
    worker.PULSE_S = 1.0
    worker.SHARES_S = 10.0
    worker.DEPTH_S = 3.0
    worker.PARKED_S = 5.0
    setattr(worker, "LAG_S", 20.0)  # noqa: B010 - imported there, so that mypy does not know it
    duties.REPORT_S = duties.REGISTRY_S = 3.0
    duties.RECORD_S = 20.0
    duties.SWEEP_S = 15.0
    duties.ERASE_S = 10.0
    duties.EXPAND_S = 4.0
    duties.TIDY_S = 6.0
