"""The promises that the log lacks; read without the client of Kafka, which is an extra."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from waypost.ports.promises import EVERY_PROMISE, Promise

INSTEAD: Final[Mapping[Promise, str]] = {
    Promise.ACCEPTS_WHOLE_BATCHES: "each item is answered for itself: what was not written is refused with 503",
    Promise.REOPENS_WINDOWS: "it is a duplicate until the window ends, or `waypost dedup clear` ends it",
    Promise.RECORDS_DUPLICATES: "it is answered with the first one's id, and leaves no record",
    Promise.BOUNDS_BUSY_APPS: "apps take turns in what a worker has read; the rest of a partition is read in its order",
    Promise.ENDS_IN_DOUBT_IN_TIME: "it ends 15 s after its deadline",
    Promise.RECOVERS: "the broker hands out again what a lost worker had; what the log holds is never a suspect",
    Promise.ANSWERS_CANCELS: "the answer is `cancelling`: a worker may have begun, and nobody knows yet",
}
"""What happens instead, by the promise that is lacked."""
KEPT: Final = EVERY_PROMISE - INSTEAD.keys()
