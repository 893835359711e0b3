"""The promises of a stack on the work that it holds: each contract test of ``Work`` names those it needs.

A stack keeps every promise unless its adapter says that it lacks one, and what happens there instead.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class Promise(StrEnum):
    """A promise by the name that programs know it by; the text under it is what operators read."""

    ACCEPTS_DURABLY = "accepts_durably"
    """What is accepted survives the death of any process, and can be read and delivered at once."""
    ACCEPTS_ONCE = "accepts_once"
    """What a process is given twice under one id is delivered once."""
    ACCEPTS_WHOLE_BATCHES = "accepts_whole_batches"
    """A batch is accepted whole or not at all."""
    FINDS_REPEATS = "finds_repeats"
    """A request with a used idempotency key, or with the same content in its window, gets the first one's id."""
    REOPENS_WINDOWS = "reopens_windows"
    """What was said before is new again once the first one failed, expired, was cancelled or had no targets."""
    RECORDS_DUPLICATES = "records_duplicates"
    """A duplicate by content leaves a record of its own, with the status ``deduplicated``."""
    LEASES_ONCE = "leases_once"
    """No two workers have the same work at a time, and what a dead worker had goes to another one."""
    KEEPS_ORDER = "keeps_order"
    """New notifications of one user are taken up in the order in which they were accepted."""
    TAKES_TURNS = "takes_turns"
    """Apps take turns, so that one with much work does not hold up the others."""
    BOUNDS_BUSY_APPS = "bounds_busy_apps"
    """What an app sends is taken up in the next turn, however much another app has waiting."""
    SETTLES_WHOLE = "settles_whole"
    """All that follows from an attempt is written together or not at all, and of two outcomes the first counts."""
    KEEPS_TIME = "keeps_time"
    """Schedules, retries and parked deliveries come back when they are due and never before, also after a crash."""
    SENDS_AT_MOST_ONCE = "sends_at_most_once"
    """With ``at_most_once``, an attempt that may have begun is never repeated."""
    ENDS_IN_DOUBT_IN_TIME = "ends_in_doubt_in_time"
    """An ``at_most_once`` delivery that has no outcome becomes ``unknown`` at its deadline."""
    REPLAYS = "replays"
    """What failed, expired or is unknown can be sent again, once for each time that this is asked for."""
    CANCELS = "cancels"
    """A cancelled notification gets no attempt after the one that is under way."""
    ANSWERS_CANCELS = "answers_cancels"
    """Cancelling takes effect before it is answered, and the answer counts what was cancelled and what was sent."""
    CONFIRMS = "confirms"
    """What is known later of a delivery (delivered, opened) moves its status upwards only, also after the end."""
    WAITS = "waits"
    """A target can wait for a time, or for another one to be confirmed: then it is sent or cancelled, never both."""
    SUPERSEDES = "supersedes"
    """A newer notification takes the place of what is unsent of an older one."""
    RECOVERS = "recovers"
    """What nobody has is offered to workers again, or ended, by order of the recovery or of an operator."""
    JOURNALS = "journals"
    """The journal tells of each change of a notification exactly once."""
    COUNTS = "counts"
    """What waits and what is not final is counted, by lane and by app."""


EVERY_PROMISE: Final = frozenset(Promise)
