"""The state of a credential as seen while it is used, for telemetry and for whoever asks whether it works."""

from __future__ import annotations

from collections.abc import Callable
from typing import assert_never

from waypost.domain.credential import CredentialId
from waypost.domain.outcome import CredentialRejected, Outcome, Reach, Taken
from waypost.http2 import ConnectFailed, ConnectionClosed, ConnectionOpened, GoAwayReceived, PoolEvent
from waypost.ports.sender import Health
from waypost.telemetry.events import Event
from waypost.telemetry.metrics import Metric
from waypost.telemetry.sink import Telemetry

MANY_REASONS = 100
"""The most reasons that are remembered as told: a reason names a server, and subscriptions may name any."""


class CredentialWatch:
    """A watch on one credential; *connections* says how many are open to its provider."""

    def __init__(self, credential: CredentialId, telemetry: Telemetry, connections: Callable[[], int]) -> None:
        self._credential = str(credential)
        self._telemetry = telemetry
        self._connections = connections
        self._denied: str | None = None
        self._failed: set[str] = set()
        """The reasons why connections could not be opened since the last one was."""

    def heed(self, outcome: Outcome) -> None:
        """Note a refusal of the whole credential: told once, it stands until the provider takes something again."""
        if isinstance(outcome, Taken):
            self.is_well()
        elif isinstance(outcome, CredentialRejected) and outcome.reach is Reach.CREDENTIAL:
            why = f"{outcome.code}: {outcome.why}"
            if why != self._denied:
                self._denied = why
                self._telemetry.event(
                    Event.CREDENTIAL_DENIED, credential=self._credential, code=outcome.code, why=outcome.why
                )

    def is_well(self) -> None:
        """Note that the provider has taken something."""
        self._denied = None

    def saw(self, event: PoolEvent) -> None:
        """Tell what happened to a connection, and how many there are now."""
        match event:
            case ConnectionOpened():
                self._failed.clear()
                self._telemetry.event(Event.CONNECTION_OPENED, credential=self._credential)
            case ConnectionClosed(reason):
                self._telemetry.event(Event.CONNECTION_CLOSED, credential=self._credential, why=reason)
            case ConnectFailed(reason):
                self._tell_failure(reason)
            case GoAwayReceived(code):
                self._telemetry.event(Event.CONNECTION_GOAWAY, credential=self._credential, code=code)
            case _:
                assert_never(event)
        self._telemetry.gauge(Metric.CONNECTIONS, self._connections(), credential=self._credential)

    def _tell_failure(self, reason: str) -> None:
        """Tell of a failed connection once until one is open again: attempts go on, and say the same each time."""
        if len(self._failed) >= MANY_REASONS:
            self._failed.clear()
        if reason not in self._failed:
            self._failed.add(reason)
            self._telemetry.event(Event.CONNECTION_FAILED, credential=self._credential, why=reason)

    def health(self) -> Health:
        """Report health: not ok while the provider refuses the credential."""
        return Health(ok=self._denied is None, why=self._denied)
