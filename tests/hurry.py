"""Waits that providers ask for or are given, cut short in real processes: what Python runs as an interpreter starts."""

HURRIED = """
from waypost.channels.fcm import errors
from waypost.channels.push import patience

errors.FIRST_WAIT_MS, errors.FIRST_WAITS_MS = 300, {}
patience.EXPECTED_S, patience.ANSWER_BY_S = 3.0, 6.0
"""
"""As ``sitecustomize``. What FCM asks for, 10 s before a retry, and how long an answer is waited for; nothing else."""

IMPATIENT_S = 2.0

IMPATIENT = f"""{HURRIED}
patience.EXPECTED_S, patience.ANSWER_BY_S = {IMPATIENT_S}, {2 * IMPATIENT_S}
"""
"""As ``sitecustomize``. An answer is late after as many seconds as this says, and waited for twice as long."""

PROBED_SOON = """
from waypost.domain import breaker

rules = breaker.BreakerRules
breaker.BreakerRules = lambda: rules(probe_after_s=0.3, probe_cap_s=1.0)
"""
"""As ``sitecustomize``. Nothing but how long an open breaker waits for its next probe is changed."""

SOON_SILENT = """
from waypost.runtime import supervisor

supervisor.SILENCE_S = 4.0
"""
"""As ``sitecustomize``. After how long without a heartbeat a worker counts as frozen, 10 s otherwise."""
