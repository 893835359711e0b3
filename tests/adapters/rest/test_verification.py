"""Verifying contacts by the API: whose codes they are, how often they are tried and sent, and what a link shows."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import msgspec
import pytest

from tests.adapters.rest import service as rest_service
from tests.adapters.rest.issuers import user_token, users_issuer
from tests.adapters.rest.service import DEMO, Service, served
from waypost.config import AppSettings, Config
from waypost.config.settings import ContactSettings
from waypost.domain.contact_code import LinkedCode, code_of, link_token
from waypost.domain.device import EMAIL, PHONE, Registration
from waypost.domain.errors import Fault
from waypost.domain.ids import UserId
from waypost.domain.notification import Lane
from waypost.domain.scope import Scope
from waypost.domain.time import HOUR_MS, MINUTE_MS
from waypost.entrypoints.rest.app import build_app
from waypost.features.contacts.settings import ContactSecret
from waypost.stores.sql.store import Store

pytestmark = pytest.mark.asyncio

SECRET = bytes(range(32))
ANN = UserId("ann")
CONTACT = "/v1/users/ann/contacts/email"
MAILBOX = {"address": "ann@example.com"}


def _any(_: Registration) -> list[Fault]:
    return []


@pytest.fixture(autouse=True)
def _on_a_file(empty_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work on a file of SQLite: proofs have no store in memory."""
    monkeypatch.setattr(rest_service, "FILE", empty_file)


@asynccontextmanager
async def verifying(folder: Path) -> AsyncIterator[tuple[Service, httpx.AsyncClient]]:
    """Serve an app that has mailboxes verified, and takes telephones as they are."""
    file = folder / "contacts.key"
    file.write_bytes(SECRET)
    async with served(issuers=[users_issuer(folder)]) as (service, _):
        app = AppSettings(contacts=ContactSettings(verify=("email",), codes_per_hour=2))
        settings = ContactSecret(secret_file=str(file))
        ground = msgspec.structs.replace(
            service.api.grounds["contacts"], config=Config(apps={DEMO: app}), settings=settings
        )
        service.api = msgspec.structs.replace(
            service.api, grounds={"contacts": ground}, device_checks={DEMO: {EMAIL: _any, PHONE: _any}}
        )
        service.app = build_app(service.api)
        async with service.client() as client:
            yield service, client


async def pending(service: Service, user: UserId = ANN) -> tuple[str, str]:
    """The code that is on its way to a user, and its link."""
    assert isinstance(service.stores, Store)
    found = await service.stores.contact_proofs.of(DEMO, [user], service.clock.now())
    (code,) = found[user].pending
    return code_of(SECRET, code), f"/v/demo/{link_token(SECRET, DEMO, LinkedCode(user, code.nonce))}"


async def enter(client: httpx.AsyncClient, code: str) -> tuple[int, str | None]:
    """Enter a code; the status, and the code of what is wrong."""
    answer = await client.post(f"{CONTACT}/verify", json={"code": code})
    return answer.status_code, answer.json().get("code")


async def test_a_code_is_a_notification_of_the_first_lane_that_does_not_say_it(tmp_path: Path) -> None:
    async with verifying(tmp_path) as (service, client):
        made = (await client.put(CONTACT, json=MAILBOX)).json()
        assert (made["verified"], made["code_sent"]) == (False, True)
        (sent,) = await service.accepted()
        assert (sent.lane, sent.device_ids, sent.ttl_ms) == (Lane.CRITICAL, ("contact:email",), 10 * MINUTE_MS)
        assert (await pending(service))[0] not in str(sent.content)
        assert (await client.put(CONTACT, json=MAILBOX)).json()["code_sent"] is False, "said again at each start"
        number = (await client.put("/v1/users/ann/contacts/phone", json={"address": "+49170"})).json()
        assert (number["verified"], number["code_sent"]) == (None, False)
        assert (await client.post("/v1/users/ann/contacts/phone/send-code")).status_code == 404
        assert (await client.post("/v1/users/bob/contacts/email/send-code")).status_code == 404


async def test_a_code_may_be_tried_five_times(tmp_path: Path) -> None:
    async with verifying(tmp_path) as (service, client):
        await client.put(CONTACT, json=MAILBOX)
        code, _ = await pending(service)
        wrong = f"{(int(code) + 1) % 1_000_000:06}"
        assert [await enter(client, wrong) for _ in range(5)] == [(409, "wrong_code")] * 5
        assert await enter(client, code) == (409, "wrong_code")
        await client.post(f"{CONTACT}/send-code")
        assert (await enter(client, (await pending(service))[0]))[0] == 200
        assert (await client.get("/v1/users/ann/contacts")).json()["contacts"][0]["verified"] is True
        assert (await client.post(f"{CONTACT}/send-code")).json()["code"] == "wrong_state"
        assert (await enter(client, "12345"))[0] == 400


async def test_a_code_ends_and_so_many_are_sent_in_an_hour(tmp_path: Path) -> None:
    async with verifying(tmp_path) as (service, client):
        service.clock.advance(HOUR_MS - service.clock.now() % HOUR_MS)
        await client.put(CONTACT, json=MAILBOX)
        code, link = await pending(service)
        service.clock.advance(10 * MINUTE_MS)
        assert await enter(client, code) == (409, "wrong_code")
        assert (await client.get(link)).status_code == 404
        assert (await client.post(f"{CONTACT}/send-code")).status_code == 202
        refused = await client.post(f"{CONTACT}/send-code")
        assert (refused.status_code, refused.headers["retry-after"]) == (429, str(50 * 60))
        same = (await client.put("/v1/users/bob/contacts/email", json=MAILBOX)).json()
        assert same["code_sent"] is False, "the address has had enough, whoever asks"
        service.clock.advance(50 * MINUTE_MS)
        assert (await client.post(f"{CONTACT}/send-code")).status_code == 202


async def test_an_address_that_was_changed_or_removed_is_verified_anew(tmp_path: Path) -> None:
    async with verifying(tmp_path) as (service, client):
        await client.put(CONTACT, json=MAILBOX)
        assert (await enter(client, (await pending(service))[0]))[0] == 200
        changed = (await client.put(CONTACT, json={"address": "ann@example.org"})).json()
        assert (changed["verified"], changed["code_sent"]) == (False, True)
        back = (await client.put(CONTACT, json=MAILBOX)).json()
        assert back["verified"] is False
        assert (await enter(client, (await pending(service))[0]))[0] == 200
        await client.delete(CONTACT)
        assert (await client.put(CONTACT, json=MAILBOX)).json()["verified"] is False


async def test_a_link_asks_first_and_holds_once(tmp_path: Path) -> None:
    async with verifying(tmp_path) as (service, client):
        await client.put(CONTACT, json=MAILBOX)
        _, link = await pending(service)
        async with service.client("none") as anybody:
            del anybody.headers["authorization"]
            page = await anybody.get(link)
            assert (page.status_code, '<form method="post">' in page.text) == (200, True)
            assert (await client.get("/v1/users/ann/contacts")).json()["contacts"][0]["verified"] is False
            assert (await anybody.post(link[:-2] + "AA")).status_code == 404
            assert (await anybody.post(link.replace("demo", "other"))).status_code == 404
            assert (await anybody.post(link)).status_code == 200
            assert (await anybody.post(link)).status_code == 404
        assert (await client.get("/v1/users/ann/contacts")).json()["contacts"][0]["verified"] is True


async def test_users_verify_what_is_theirs_and_nothing_else(tmp_path: Path) -> None:
    async with verifying(tmp_path) as (service, client):
        await client.put(CONTACT, json=MAILBOX)
        code, _ = await pending(service)
        async with service.client(user_token("bob", Scope.DEVICES)) as bob:
            assert (await bob.post(f"{CONTACT}/verify", json={"code": code})).status_code == 404
            assert (await bob.post(f"{CONTACT}/send-code")).status_code == 404
        async with service.client(user_token("ann", Scope.DEVICES)) as ann:
            assert (await ann.post(f"{CONTACT}/verify", json={"code": code})).status_code == 200
