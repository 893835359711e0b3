"""Figures: rates and funnels from counts. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, Literal

from waypost.domain.time import Instant
from waypost.domain.tracked import NotificationEvent
from waypost.ports.analytics import Count

Of = Literal["notifications", "deliveries"]
"""What is counted: a notification once, or each of its deliveries."""
Sums = Mapping[NotificationEvent, int]
_E = NotificationEvent
FUNNEL: Final = (_E.SENT, _E.DELIVERED, _E.OPENED, _E.ACTION_TAKEN)
"""The steps of a funnel; each is a part of the one before."""


def grouped(counts: Iterable[Count], of: Of) -> dict[tuple[str | None, Instant | None], Sums]:
    """Put the counts of one label and one span of time together, in their order."""
    found: dict[tuple[str | None, Instant | None], dict[NotificationEvent, int]] = {}
    for each in sorted(counts, key=lambda it: (it.start or 0, it.label or "")):
        sums = found.setdefault((each.label, each.start), dict.fromkeys(_E, 0))
        sums[each.event] += each.notifications if of == "notifications" else each.deliveries
    return dict(found)


def rate(part: int, whole: int) -> float | None:
    """Return *part* of *whole*, rounded to a hundredth of a percent; None where there is nothing to be part of."""
    return round(part / whole, 4) if whole else None
