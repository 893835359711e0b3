"""The clock, beside those of others: leases, ends of tokens and quiet hours go by it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Final

from waypost.bootstrap.doctor.findings import Finding, ok, problem, span, warning

CLOCK: Final = "clock"
_NOTICED_S: Final = 2.0
"""A server's Date has whole seconds, and an answer takes a while."""
_WRONG_S: Final = 60.0
"""Apple and Google refuse tokens of a clock that is minutes off."""
_SET_S: Final = 0.5
_DO: Final = "let NTP keep the clock: timedatectl set-ntp true, or chrony; on a virtual machine look at its host"


class Watch:
    """A watch on this machine's clock while all else is looked at: it must go as fast as time does."""

    def __init__(self) -> None:
        self._began = time.time(), time.monotonic()

    def look(self) -> Finding:
        """Say whether the clock was set meanwhile."""
        wall, steady = (now - began for now, began in zip((time.time(), time.monotonic()), self._began, strict=True))
        if abs(wall - steady) < _SET_S:
            return ok(CLOCK, "steady", "nobody set it meanwhile")
        saw = f"it was set by {wall - steady:+.1f} s while this ran"
        return warning(CLOCK, "steady", saw, f"{_DO}: it must be slewed, not set")


def clock_of_server(ahead_s: float | None) -> Iterator[Finding]:
    """Compare with the database server's clock, which is *ahead_s* ahead."""
    if ahead_s is not None:
        yield beside("database server", ahead_s)


def beside(whose: str, ahead_s: float) -> Finding:
    """Compare with a clock that is *ahead_s* seconds ahead of ours."""
    off = abs(ahead_s)
    if off <= _NOTICED_S:
        return ok(CLOCK, whose, f"{off:.1f} s apart")
    saw = f"ours is {span(off)} {'behind' if ahead_s > 0 else 'ahead of'} it"
    return (problem if off > _WRONG_S else warning)(CLOCK, whose, saw, _DO)
