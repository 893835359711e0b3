"""Names that do not resolve, certificates that do not fit, credentials that are refused, a clock that steps back."""

from __future__ import annotations

import asyncio
import datetime as dt
import random
from pathlib import Path
from typing import Any

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from tests.journeys.balance import balance
from tests.journeys.harness import DEADLINE_S, Json, Service, running, until
from tests.journeys.load import Audience, Entry, Load
from tests.survival import Survived
from tests.tables import AddRow

EVERYWHERE = (("ios", "android", "web"),)
REFUSALS = (
    {"where": "apns", "do": {"answer": {"status": 403, "reason": "InvalidProviderToken"}}},
    {"where": "oauth", "do": {"answer": {"status": 400, "reason": "invalid_grant"}}},
    {"where": "webpush", "do": {"answer": {"status": 401, "body": '{"errno": 109}'}}},
)


async def _told(service: Service, rng: random.Random, count: int = 5) -> Load:
    """Users with all three devices, each told once."""
    audience = Audience(service)
    await audience.register(count, EVERYWHERE)
    load = Load(service, audience, rng, scheduled_at=None, guarantee="at_least_once", urgency="normal")
    visible = {"kind": "visible", "title": "News"}  # in one lane: leased, and so sent or parked, together
    await load.submit_together([load.compose(**visible, user_id=user) for user in load.users])
    return load


async def _states(service: Service, entry: Entry) -> dict[str, Json]:
    """The receipts of a notification by device."""
    status, detail = await service.ask("GET", f"/v1/notifications/{entry.id}")
    assert status == 200, detail
    return {receipt["device_id"]: receipt for receipt in detail["receipts"]}


async def _waits_for(service: Service, load: Load, device: str, words: str) -> bool:
    """Whether all deliveries to *device* wait for the reason that has *words*, and all others are sent."""
    for entry in load.ledger.entries.values():
        states = await _states(service, entry)
        waiting = states.pop(device, None)
        if waiting is None or waiting["status"] != "pending" or words not in (waiting["reason"] or ""):
            return False
        if not waiting["parked"] and not waiting["next_retry_at"]:
            return False
        if {each["status"] for each in states.values()} != {"sent"}:
            return False
    return True


async def _apart_from(service: Service, part: str, workers: int = 1, **wrong: Any) -> None:
    """Start, or start again, with some settings of one provider replaced; without any, as it should be."""
    service.end()
    service.configure(workers=workers)
    tree = yaml.safe_load(service.config_path.read_text())
    tree["apps"]["demo"][part] |= wrong
    service.config_path.write_text(yaml.safe_dump(tree))
    await service.start()


@pytest.mark.asyncio
async def test_a_host_that_does_not_resolve_holds_up_only_its_own_channel(
    tmp_path: Path, rng: random.Random, table: AddRow
) -> None:
    """FCM's deliveries wait and say why; the other channels go on; with the right name all of it is sent."""
    async with running(tmp_path, start=False) as service:
        await _apart_from(service, "fcm", endpoint="https://fcm.invalid")
        load = await _told(service, rng)
        words = "cannot resolve fcm.invalid"
        await until(lambda: _waits_for(service, load, "android", words), "FCM waits, the others are sent")
        await _apart_from(service, "fcm")
        table("outside", trouble="DNS failure", **(await balance(service, load.ledger)).row())


@pytest.mark.asyncio
async def test_a_certificate_of_another_authority_is_not_trusted(
    tmp_path: Path, rng: random.Random, table: AddRow
) -> None:
    """Nothing goes to APNs, nothing is lost; with the right authority all of it is sent."""
    _write_authority(tmp_path / "other.pem")
    async with running(tmp_path, start=False) as service:
        await _apart_from(service, "apns", ca_file=str(tmp_path / "other.pem"))
        load = await _told(service, rng)
        words = "CERTIFICATE_VERIFY_FAILED"
        await until(lambda: _waits_for(service, load, "ios", words), "APNs waits, the others are sent")
        await _apart_from(service, "apns")
        table("outside", trouble="TLS failure", **(await balance(service, load.ledger)).row())


@pytest.mark.asyncio
async def test_a_credential_that_is_garbage_ends_the_start_with_its_path(tmp_path: Path) -> None:
    """One line that names the setting, however many workers would say it; nothing of the file is shown."""
    garbage = tmp_path / "garbage"
    garbage.write_text("sesame-open")
    async with running(tmp_path, start=False) as service:
        paths = ("apns.key_file", "fcm.service_account_file", "webpush.vapid_private_key_file")
        for path, workers in zip(paths, (1, 2, 2), strict=True):
            part, _, name = path.partition(".")
            with pytest.raises(AssertionError) as refused:
                await _apart_from(service, part, workers=workers, **{name: str(garbage)})
            assert str(refused.value).count(f"waypost: configuration: apps.demo.{path}: ") == 1
            assert "sesame" not in str(refused.value)


@pytest.mark.asyncio
async def test_refused_credentials_hold_their_deliveries_until_they_are_taken_again(
    tmp_path: Path, rng: random.Random, table: AddRow
) -> None:
    """All three providers refuse the credential: nothing fails or spends a retry, and a probe finds it healed."""
    async with running(tmp_path, workers=1) as service:
        await service.lab.script(*REFUSALS)
        await service.lab.ask("POST", "/oauth/revoke")  # the token that was fetched at the start
        load = await _told(service, rng)

        async def all_wait() -> bool:
            entries = load.ledger.entries.values()
            states = [each for entry in entries for each in (await _states(service, entry)).values()]
            assert all(each["status"] == "pending" and not each["retries"] for each in states), states
            return len(states) == 3 * len(entries) and all(each["parked"] or each["next_retry_at"] for each in states)

        await until(all_wait, "every delivery is parked, or rests until after the next probe")
        denied = {line["credential"] for line in service.log("credential.denied")}
        assert denied == {"demo/apns", "demo/fcm"}
        scopes = [line.get("scope") for line in service.log("breaker.opened") if line["credential"] == "demo/webpush"]
        assert scopes == [service.lab.urls["webpush"]], "a push service refuses for itself alone"
        await service.lab.heal()
        table("outside", trouble="credentials refused", **(await balance(service, load.ledger)).row())


STEP_S = 120
CLOCK = """
import time
from pathlib import Path

real = time.time_ns
time.time_ns = lambda: real() + int(Path({offset!r}).read_text() or "0") * 1_000_000_000
"""


@pytest.mark.survives("the wall clock 2 minutes back", on="embedded", so="nothing stops, ids never go back")
@pytest.mark.timeout(2 * STEP_S + 300)
@pytest.mark.asyncio
async def test_a_wall_clock_that_steps_back_stops_nothing(
    tmp_path: Path, rng: random.Random, survived: Survived
) -> None:
    """Two minutes back under load: ids go on growing, keys are still known, everything ends."""
    offset = tmp_path / "offset"
    offset.write_text("0")
    async with running(tmp_path, sitecustomize=CLOCK.format(offset=str(offset)), workers=1) as service:
        audience = Audience(service)
        await audience.register(8)
        load = Load(service, audience, rng, scheduled_at=None)
        callers = asyncio.create_task(load.run(4, limit=1_000_000, pause_s=0.01))
        await load.grown(100)
        offset.write_text(str(-STEP_S))
        before = set(load.ledger.entries)
        await load.grown(200)
        load.stop()
        await callers
        newest_before = max(before)
        grown = [id_ for id_ in load.ledger.entries if id_ not in before]
        late = [id_ for id_ in grown if id_ < newest_before]
        assert len(late) <= 4, "an id went back"  # what was being answered at the step
        for entry in load.keyed(5):
            await load.repeat(entry)
        result = await balance(service, load.ledger, deadline_s=STEP_S + DEADLINE_S)  # a timer of before is so late
        survived(**result.row())


def _write_authority(path: Path) -> None:
    """The certificate of an authority that signed nothing here."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "Another authority")])
    now, hour = dt.datetime.now(dt.UTC), dt.timedelta(hours=1)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - hour)
        .not_valid_after(now + hour)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    path.write_bytes(made.public_bytes(serialization.Encoding.PEM))
