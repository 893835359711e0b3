"""What users want decides in processes of their own: one machine takes the change, another one sends."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.journeys.harness import Json, Service, running, until
from tests.shows import shows

pytestmark = pytest.mark.asyncio

SETTINGS: dict[str, Any] = {
    "types": {"promotion": {"titles": {"en": "Offers"}}, "otp": {"critical": True}},
    "time_zone": "Europe/Zurich",
}
PREFERENCES = "/v1/users/ann/preferences"


async def sent(door: Service, kind: str) -> Json:
    """Notify ann; the notification as it ended."""
    body = {"user_id": "ann", "title": "Hello", "type": kind, "dedup_window": 0}
    status, made = await door.ask("POST", "/v1/notifications", body)
    assert status == 202, made

    async def over() -> Json | None:
        _, found = await door.ask("GET", f"/v1/notifications/{made['id']}")
        return found if found["notification"]["status"] not in ("pending", "processing", "scheduled") else None

    found: Json = await until(over, f"the end of a {kind}")
    return found


def fates(found: Json) -> list[tuple[str, str | None]]:
    """The status and reason of each target."""
    return [(each["status"], each["reason"]) for each in found["receipts"]]


@shows("S2-23", "S3-72", "S3-111", "S3-114")
@pytest.mark.engines
async def test_what_one_machine_is_told_counts_in_the_next_notification_of_another(
    tmp_path: Path, postgres_url: str
) -> None:
    """The door alone takes requests; who delivers has ann in memory, and hears of her change by the store alone."""
    store = {"url": postgres_url, "run_dir": str(tmp_path / "run")}
    async with running(tmp_path, workers=1, roles=["api"], store=store, app=SETTINGS) as door:
        delivering = ["worker", "report", "expand", "sweep"]
        folder = tmp_path / "other" / "run"
        other = door.beside(
            "other", workers=1, roles=delivering, store={"url": postgres_url, "run_dir": str(folder)}, app=SETTINGS
        )
        try:
            await other.start()
            assert (await door.ask("PUT", "/v1/devices/ann/phone", {"platform": "android", "token": "t" * 40}))[
                0
            ] == 201
            assert fates(await sent(door, "promotion")) == [("sent", None)]
            status, said = await door.ask("PATCH", PREFERENCES, {"types": {"promotion": {"enabled": False}}})
            assert (status, {each["name"]: each["enabled"] for each in said["types"]}) == (
                200,
                {"otp": True, "promotion": False},
            )
            assert fates(await sent(door, "promotion")) == [("suppressed", "preference")]
            await door.ask("PATCH", PREFERENCES, {"enabled": False})
            assert fates(await sent(door, "news")) == [("suppressed", "preference")]
            assert fates(await sent(door, "otp")) == [("sent", None)]
            await door.ask("PATCH", PREFERENCES, {"enabled": True, "types": {"promotion": None}})
            assert fates(await sent(door, "promotion")) == [("sent", None)]
        finally:
            other.end()


@shows("S3-112", "S3-113")
async def test_what_comes_at_night_or_is_too_much_is_skipped_or_waits_as_its_type_says(tmp_path: Path) -> None:
    """Two workers share a file. It is night for an hour before and after now, until ann says otherwise."""
    now = datetime.now(UTC)
    night = {"start": f"{now - timedelta(hours=1):%H:%M}", "end": f"{now + timedelta(hours=1):%H:%M}"}
    settings = {
        "types": {
            "later": {},
            "never": {"quiet_hours": "skip"},
            "held": {"quiet_hours": "pass", "cap": {"limit": 2, "per": "1h"}},
            "dropped": {"quiet_hours": "pass", "cap": {"limit": 2, "per": "1h", "over": "drop"}},
        }
    }
    async with running(tmp_path, workers=2, app=settings) as service:
        await service.ask("PUT", "/v1/devices/ann/phone", {"platform": "android", "token": "t" * 40})
        status, said = await service.ask("PATCH", PREFERENCES, {"quiet_hours": night, "time_zone": "UTC"})
        assert (status, said["quiet_hours"], said["time_zone"]) == (200, night, "UTC")
        assert fates(await sent(service, "never")) == [("suppressed", "quiet_hours")]
        assert await waits_for(service, "later") == "rule:quiet_hours"
        assert await several(service, "dropped") == [("sent", None)] * 2 + [("suppressed", "frequency_limit")] * 3
        assert fates(await sent(service, "held")) == fates(await sent(service, "held")) == [("sent", None)]
        assert await waits_for(service, "held") == "rule:frequency_limit"
        body = {"user_id": "ann", "title": "Hello", "type": "dropped"}
        _, explained = await service.ask("POST", "/v1/explain", body)
        rulings = [(each["rule"], each["verdict"], each["reason"]) for each in explained["routing"]]
        assert ("frequency_limit", "suppressed", "frequency_limit") in rulings


async def several(service: Service, kind: str) -> list[tuple[str, str | None]]:
    """Notify ann five times at once; the fates, sorted."""
    found = await asyncio.gather(*(sent(service, kind) for _ in range(5)))
    return sorted(fate for each in found for fate in fates(each))


async def waits_for(service: Service, kind: str) -> str:
    """Notify ann; what the receipt says that it waits for."""
    body = {"user_id": "ann", "title": "Hello", "type": kind, "dedup_window": 0}
    _, made = await service.ask("POST", "/v1/notifications", body)

    async def waits() -> str | None:
        _, found = await service.ask("GET", f"/v1/notifications/{made['id']}")
        return found["receipts"][0]["parked"] if found["receipts"] else None

    condition: str = await until(waits, f"a {kind} waits")
    return condition
