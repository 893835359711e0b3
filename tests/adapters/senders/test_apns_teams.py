"""A connection carries one team: Apple binds it to the first that pushes, and refuses another."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from tests.adapters.senders.bench import SystemClock, accepted, outcome, outcomes, script, to_ios
from waypost.channels.apns.sender import ApnsSender
from waypost.channels.apns.settings import ApnsSettings
from waypost.domain.credential import CredentialId
from waypost.domain.ids import AppId
from waypost.domain.outcome import Taken, Unreachable
from waypost.lab import Lab
from waypost.lab.apns_identity import SigningKey
from waypost.telemetry.sink import Silent


def of_another_team(lab: Lab, settings: ApnsSettings, file: Path) -> ApnsSettings:
    """The same app as another team's key may push to it."""
    key = ec.generate_private_key(ec.SECP256R1())
    file.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    lab.providers.add_key(SigningKey("OTHER12345", "OTHER67890", key.public_key(), (settings.topic,)))
    return msgspec.structs.replace(settings, key_file=str(file), key_id="OTHER12345", team_id="OTHER67890")


@pytest.mark.asyncio
async def test_two_credentials_never_share_a_connection(lab: Lab, apns_settings: ApnsSettings, tmp_path: Path) -> None:
    other_settings = of_another_team(lab, apns_settings, tmp_path / "Other.p8")
    senders = [
        ApnsSender(CredentialId.of(AppId(app), "apns"), settings, clock=SystemClock(), telemetry=Silent())
        for app, settings in (("demo", apns_settings), ("other", other_settings))
    ]
    connections: list[set[int]] = []
    for sender in senders:
        await sender.start()
    for _ in range(2):
        for sender in senders:
            seen = len(accepted(lab, "apns"))
            got = await outcomes(sender, [to_ios(lab) for _ in range(20)])
            assert all(isinstance(each, Taken) for each in got)
            connections.append({record.connection for record in accepted(lab, "apns")[seen:]})
    assert (connections[0] | connections[2]).isdisjoint(connections[1] | connections[3])
    assert lab.records.counts["apns"].refused == 0
    for sender in senders:
        await sender.stop(1)


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("status", "reason"), [(403, "UnrelatedKeyIdInToken"), (400, "IdleTimeout"), (503, "Shutdown")]
)
async def test_a_connection_that_apple_calls_over_is_given_up(
    lab: Lab, apns: ApnsSender, status: int, reason: str
) -> None:
    """What is under way on it ends there; what comes later goes over a new one."""
    assert isinstance(await outcome(apns, to_ios(lab)), Taken)
    over = {"status": status, "reason": reason}
    await lab.script(script({"where": "apns", "match": {"times": 1}, "do": {"answer": over}}))
    got = await outcomes(apns, [to_ios(lab) for _ in range(10)])
    refused = [each for each in got if not isinstance(each, Taken)]
    assert [each.code for each in refused if isinstance(each, Unreachable)] == [reason] and len(refused) == 1
    assert isinstance(await outcome(apns, to_ios(lab)), Taken)
    first, *others, last = (record.connection for record in accepted(lab, "apns"))
    assert set(others) == {first}
    assert last != first
    assert lab.records.counts["apns"].connections_opened == 2
