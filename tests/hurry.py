"""Waits, cut short in real processes: what Python runs as an interpreter starts."""

HURRIED = """
from waypost.adapters.fcm import errors

errors.FIRST_WAIT_MS, errors.FIRST_WAITS_MS = 300, {}
"""
"""As ``sitecustomize``. Nothing but what FCM asks for, 10 s before a retry, is changed."""

PROBED_SOON = """
from waypost.domain import breaker

rules = breaker.BreakerRules
breaker.BreakerRules = lambda: rules(probe_after_s=0.3, probe_cap_s=1.0)
"""
"""As ``sitecustomize``. Nothing but how long an open breaker waits for its next probe is changed."""
