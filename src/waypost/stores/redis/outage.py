"""The state of an outage, which is reported once when it begins and once when it ends."""

from __future__ import annotations

from waypost.telemetry import Event, Telemetry


class Outage:
    """The state of Redis as far as this process knows: away or not."""

    def __init__(self, telemetry: Telemetry) -> None:
        self._telemetry = telemetry
        self._is_on = False

    def began(self, why: str) -> None:
        """Note that Redis did not answer; *why* holds no secret."""
        if not self._is_on:
            self._is_on = True
            self._telemetry.event(Event.REDIS_AWAY, why=why)

    def ended(self) -> None:
        """Note that Redis has answered."""
        if self._is_on:
            self._is_on = False
            self._telemetry.event(Event.REDIS_BACK)
