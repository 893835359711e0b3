"""The time for which providers are waited for: the same for every sender."""

from __future__ import annotations

from typing import Final, NamedTuple

EXPECTED_S: Final = 10.0
"""Seconds from hand-over in which an answer is expected. What is not on the wire by then is not sent."""
ANSWER_BY_S: Final = 20.0
"""From hand-over, too: until then a late answer counts. A provider that is merely slow has taken the message, so that
giving up earlier and sending again would add a copy, and load where there is too much of it already."""


class Until(NamedTuple):
    """The two instants of some requests, by the loop's clock."""

    deadline: float
    answer_by: float


def until(now_s: float) -> Until:
    """Compute the instants of what is handed over at *now_s*."""
    return Until(now_s + EXPECTED_S, now_s + ANSWER_BY_S)


def request_timeout_ms() -> int:
    """Return the longest that a request can take until its outcome is known."""
    return int(ANSWER_BY_S * 1000)
