"""Contacts: a user's telephone, mailbox and URL, which are devices by another name."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import msgspec
import pytest

from tests.adapters.rest.service import DEMO, Service, served
from waypost.domain.device import EMAIL, PHONE, Registration
from waypost.domain.errors import Fault
from waypost.domain.ids import UserId
from waypost.entrypoints.rest.app import build_app

pytestmark = [pytest.mark.asyncio, pytest.mark.usefixtures("each_store")]

MAILBOX = {"address": "Ann@Example.com"}


def _check(said: Registration) -> list[Fault]:
    return [] if "@" in said.token else [Fault("token", "is no mailbox")]


@asynccontextmanager
async def with_email() -> AsyncIterator[tuple[Service, httpx.AsyncClient]]:
    """Serve an app that has a channel for mailboxes."""
    async with served() as (service, _):
        checks = {DEMO: {**service.api.device_checks[DEMO], EMAIL: _check}}
        service.api = msgspec.structs.replace(service.api, device_checks=checks, canonical={EMAIL: str.lower})
        service.app = build_app(service.api)
        async with service.client() as client:
            yield service, client


async def test_a_contact_is_put_listed_and_removed() -> None:
    async with with_email() as (service, client):
        made = await client.put("/v1/users/ann/contacts/email", json=MAILBOX)
        assert (made.status_code, made.json()["kind"], made.json()["created"]) == (201, "email", True)
        assert "example" not in made.text.lower(), "an address is never shown"
        ((device,),) = await service.devices.for_users([(DEMO, UserId("ann"))])
        assert (device.device_id, device.platform, device.token) == (
            "contact:email",
            EMAIL,
            "ann@example.com",
        )
        again = await client.put("/v1/users/ann/contacts/email", json={"address": "ann@example.org"})
        assert (again.status_code, again.json()["created"]) == (200, False)
        await client.put("/v1/devices/ann/pixel", json={"platform": "android", "token": "registration-token"})
        (listed,) = (await client.get("/v1/users/ann/contacts")).json()["contacts"]
        assert listed["address_hash"] == again.json()["address_hash"] != made.json()["address_hash"]
        assert (await client.delete("/v1/users/ann/contacts/email")).status_code == 204
        assert (await client.delete("/v1/users/ann/contacts/email")).status_code == 404
        assert (await client.get("/v1/users/ann/contacts")).json() == {"contacts": []}


@pytest.mark.parametrize(
    ("kind", "body", "status", "fault"),
    [
        ("email", {"address": "ann"}, 400, {"path": "address", "why": "is no mailbox"}),
        ("email", {}, 400, {"path": "address"}),
        ("email", {"address": "a@b", "token": "x"}, 400, {"path": "token"}),
        ("fax", MAILBOX, 404, None),
    ],
)
async def test_what_is_no_contact_is_refused(
    kind: str, body: dict[str, str], status: int, fault: dict[str, str] | None
) -> None:
    async with with_email() as (_, client):
        answer = await client.put(f"/v1/users/ann/contacts/{kind}", json=body)
        assert answer.status_code == status
        if fault is not None:
            assert fault.items() <= answer.json()["faults"][0].items()


async def test_what_no_channel_serves_is_refused() -> None:
    async with with_email() as (service, client):
        assert PHONE not in service.api.device_checks[DEMO]
        answer = await client.put("/v1/users/ann/contacts/phone", json={"address": "+491701234567"})
        assert (answer.status_code, answer.json()["faults"][0]["path"]) == (400, "kind")
