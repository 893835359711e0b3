"""Waits that providers ask for, cut short in real processes: what Python runs as an interpreter starts."""

HURRIED = """
from waypost.adapters.fcm import errors

errors.FIRST_WAIT_MS, errors.FIRST_WAITS_MS = 300, {}
"""
"""As ``sitecustomize``. Nothing but what FCM asks for, 10 s before a retry, is changed."""
