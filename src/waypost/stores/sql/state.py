"""The abilities of a store at the moment."""

from __future__ import annotations

from enum import StrEnum

from waypost.telemetry.events import Event


class StoreState(StrEnum):
    """The state of a store: it does everything, finishes what was accepted, does nothing for now, or nothing ever."""

    OK = "ok"
    FULL = "full"
    AWAY = "away"
    BROKEN = "broken"


EVENT_OF: dict[StoreState, Event] = {
    StoreState.OK: Event.STORE_RECOVERED,
    StoreState.FULL: Event.STORE_FULL,
    StoreState.AWAY: Event.STORE_AWAY,
    StoreState.BROKEN: Event.STORE_BROKEN,
}
"""The event that is logged when a store enters a state."""
