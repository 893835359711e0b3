"""Waits that providers ask for or are given, cut short in real processes: what Python runs as an interpreter starts."""

HURRIED = """
from waypost.adapters.fcm import errors

errors.FIRST_WAIT_MS, errors.FIRST_WAITS_MS = 300, {}
"""
"""As ``sitecustomize``. Nothing but what FCM asks for, 10 s before a retry, is changed."""

IMPATIENT_S = 2.0

IMPATIENT = f"""{HURRIED}
from waypost.adapters.apns import sender as apns
from waypost.adapters.fcm import sender as fcm

apns.TIMEOUT_S = fcm.TIMEOUT_S = {IMPATIENT_S}
"""
"""As ``sitecustomize``. An answer is waited for as many seconds as this says, not 10."""
