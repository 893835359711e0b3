"""What is told of a credential: its connections, and when its provider refuses it."""

from __future__ import annotations

from waypost.channels.push.watch import CredentialWatch
from waypost.domain.channel import Channel
from waypost.domain.credential import CredentialId
from waypost.domain.ids import AppId
from waypost.domain.outcome import CredentialRejected, Gone, Reach, Taken
from waypost.http2 import ConnectFailed, ConnectionClosed, ConnectionOpened, GoAwayReceived
from waypost.ports.sender import Health
from waypost.telemetry.events import Event
from waypost.telemetry.metrics import Metric
from waypost.telemetry.sink import Silent

CREDENTIAL = CredentialId(AppId("demo"), Channel("apns"))
REVOKED = CredentialRejected("InvalidProviderToken", "the key is not accepted")


class Told(Silent):
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.events: list[tuple[Event, dict[str, object]]] = []
        self.gauges: list[tuple[Metric, float, dict[str, str]]] = []

    def event(self, event: Event, /, **fields: object) -> None:
        """Keep it."""
        self.events.append((event, fields))

    def gauge(self, metric: Metric, value: float, /, **labels: str) -> None:
        """Keep it."""
        self.gauges.append((metric, value, labels))


def test_a_refusal_is_told_once_and_stands_until_something_is_taken() -> None:
    told = Told()
    watch = CredentialWatch(CREDENTIAL, told, lambda: 0)
    assert watch.health() == Health(ok=True)
    for outcome in (REVOKED, Gone("Unregistered"), REVOKED):
        watch.heed(outcome)
    assert watch.health() == Health(ok=False, why="InvalidProviderToken: the key is not accepted")
    denied = {"credential": str(CREDENTIAL), "code": "InvalidProviderToken", "why": "the key is not accepted"}
    assert told.events == [(Event.CREDENTIAL_DENIED, denied)]
    watch.heed(Taken())
    assert watch.health() == Health(ok=True)
    watch.heed(REVOKED)
    assert told.events == [(Event.CREDENTIAL_DENIED, denied)] * 2


def test_each_change_of_a_connection_is_told_with_how_many_there_are() -> None:
    told = Told()
    watch = CredentialWatch(CREDENTIAL, told, lambda: 3)
    watch.saw(ConnectionOpened())
    watch.saw(ConnectionClosed("idle"))
    watch.saw(ConnectFailed("refused", 1.0))
    watch.saw(GoAwayReceived(0, 1, b"debug data may hold anything"))
    assert told.events == [
        (Event.CONNECTION_OPENED, {"credential": str(CREDENTIAL)}),
        (Event.CONNECTION_CLOSED, {"credential": str(CREDENTIAL), "why": "idle"}),
        (Event.CONNECTION_FAILED, {"credential": str(CREDENTIAL), "why": "refused"}),
        (Event.CONNECTION_GOAWAY, {"credential": str(CREDENTIAL), "code": 0}),
    ]
    assert told.gauges == [(Metric.CONNECTIONS, 3, {"credential": str(CREDENTIAL)})] * 4


def test_a_failure_to_connect_is_told_once_until_a_connection_is_open() -> None:
    told = Told()
    watch = CredentialWatch(CREDENTIAL, told, lambda: 0)
    for reason in ("refused", "refused", "no address", "refused"):
        watch.saw(ConnectFailed(reason, 1.0))
    assert [fields["why"] for _, fields in told.events] == ["refused", "no address"]
    watch.saw(ConnectionOpened())
    watch.saw(ConnectFailed("refused", 1.0))
    assert told.events[-1] == (Event.CONNECTION_FAILED, {"credential": str(CREDENTIAL), "why": "refused"})
    for n in range(1_000):
        watch.saw(ConnectFailed(f"host{n} refused", 1.0))
    assert len(told.events) == 1_004, "whoever names ever new servers is not remembered for ever"


def test_what_is_refused_in_a_part_of_the_provider_leaves_the_credential_well() -> None:
    told = Told()
    watch = CredentialWatch(CREDENTIAL, told, lambda: 0)
    for reach in (Reach.DEVICE, Reach.SCOPE):
        watch.heed(CredentialRejected("TopicDisallowed", "why", reach))
    assert watch.health() == Health(ok=True)
    assert told.events == []
