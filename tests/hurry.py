"""Waits that providers ask for, cut short in real processes: what Python runs as an interpreter starts."""

HURRIED = """
from waypost.adapters.fcm import errors
from waypost.adapters.push import patience

errors.FIRST_WAIT_MS, errors.FIRST_WAITS_MS = 300, {}
patience.EXPECTED_S, patience.ANSWER_BY_S = 3.0, 6.0
"""
"""As ``sitecustomize``. What FCM asks for, 10 s before a retry, and how long an answer is waited for; nothing else."""
