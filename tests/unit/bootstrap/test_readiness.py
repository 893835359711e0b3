"""What readiness says of a provider: whether deliveries go out, by all breakers there are."""

from __future__ import annotations

from waypost.bootstrap.readiness import sending_by
from waypost.domain.breaker import BreakerRules
from waypost.domain.channel import Channel
from waypost.domain.credential import CredentialId
from waypost.domain.ids import AppId
from waypost.domain.notification import Lane
from waypost.domain.outcome import Taken, Throttled
from waypost.domain.time import HOUR_MS
from waypost.ports.sender import Capabilities
from waypost.runtime.gates import Gates
from waypost.telemetry import Silent

FCM = CredentialId(AppId("demo"), Channel("fcm"))
USED_UP = Throttled("QUOTA_EXCEEDED", HOUR_MS, whole=True)


def test_a_credential_whose_breaker_is_open_says_so_until_it_is_closed() -> None:
    """Also where it is well itself: its provider asked for a pause."""
    gates = Gates({FCM: Capabilities(Channel("fcm"), 10_000, 1_000, 4096)}, {}, BreakerRules(), Silent())
    circuit = gates.of(Lane.NORMAL)[FCM].circuit
    assert sending_by(FCM, gates) == "ok"
    for _ in range(3):
        circuit.done(USED_UP, 0.0, 100)
    assert sending_by(FCM, gates) == "waits, but for probes (QUOTA_EXCEEDED)"
    gates.tick(60.0)
    assert sending_by(FCM, gates) == "waits, but for probes (QUOTA_EXCEEDED)"
    circuit.done(Taken("p1"), 61.0, 100)
    assert sending_by(FCM, gates) == "ok"
