"""Preferences by the API and on their page: who reads and changes whose, and what a click and a form mean."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from tests.adapters.rest import service as rest_service
from tests.adapters.rest.issuers import user_token, users_issuer
from tests.adapters.rest.service import DEMO, Service, served
from tests.shows import shows
from waypost.config import AppSettings, Config
from waypost.domain.channel import Channel
from waypost.domain.ids import UserId
from waypost.domain.preference_link import LinkedUser, PreferenceLinks
from waypost.domain.preferences import PreferenceSettings, TypeSettings
from waypost.domain.quiet_hours import Hours
from waypost.domain.scope import Scope
from waypost.domain.submission import NotificationType
from waypost.entrypoints.rest.app import build_app
from waypost.entrypoints.rest.settings import RestSettings
from waypost.features.preferences.settings import PreferenceSecret
from waypost.features.preferences.wording import WORDS

pytestmark = pytest.mark.asyncio

SECRET = bytes(range(32))
BASE = "https://push.example.com"
LINKS = PreferenceLinks(BASE, SECRET)
ANN = UserId("ann")
PREFERENCES = "/v1/users/ann/preferences"
TYPES = {
    NotificationType("promotion"): TypeSettings(titles={"en": "Offers", "de": "Angebote & mehr"}),  # type: ignore[dict-item]  # a NewType
    NotificationType("otp"): TypeSettings(critical=True),
}
ONE_CLICK = {"List-Unsubscribe": "One-Click"}


@pytest.fixture(autouse=True)
def _on_a_file(empty_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work on a file of SQLite: the real store."""
    monkeypatch.setattr(rest_service, "FILE", empty_file)


@asynccontextmanager
async def choosing(folder: Path) -> AsyncIterator[tuple[Service, httpx.AsyncClient]]:
    """Serve an app with two types, push and e-mail, whose users have a page."""
    file = folder / "preferences.key"
    file.write_bytes(SECRET)
    async with served(issuers=[users_issuer(folder)]) as (service, _):
        app = AppSettings(
            senders={"fcm": None, "apns": None, "email": None},
            types=TYPES,
            time_zone="Europe/Zurich",
            preferences=PreferenceSettings(quiet_hours=Hours.parse("22:00-07:00")),
        )
        secret = PreferenceSecret(secret_file=str(file))
        config = Config(apps={DEMO: app}, rest=RestSettings(public_url=BASE), features={"preferences": secret})
        families = {Channel("fcm"): "push", Channel("apns"): "push", Channel("email"): "email"}
        ground = msgspec.structs.replace(service.api.grounds["preferences"], config=config, families=families)
        service.api = msgspec.structs.replace(service.api, grounds={**service.api.grounds, "preferences": ground})
        service.app = build_app(service.api)
        async with service.client() as client:
            yield service, client


def path_of(kind: str = "", channel: str = "") -> str:
    """The path of ann's link, in a message of a type by a channel."""
    return LINKS.url(DEMO, LinkedUser(ANN, kind, channel)).removeprefix(BASE)


def by_type(said: dict[str, Any]) -> dict[str, dict[str, bool]]:
    """The channels of each type."""
    return {each["name"]: each["channels"] for each in said["types"]}


@shows("S3-114")
async def test_users_read_and_change_their_own_and_nobody_elses(tmp_path: Path) -> None:
    async with choosing(tmp_path) as (service, client):
        async with service.client(user_token("ann", Scope.DEVICES)) as ann:
            before = (await ann.get(PREFERENCES)).json()
            assert by_type(before) == {kind: {"email": True, "push": True} for kind in ("promotion", "otp")}
            assert (before["quiet_hours"], before["time_zone"]) == ({"start": "22:00", "end": "07:00"}, "Europe/Zurich")
            change = {"types": {"promotion": {"channels": {"email": False}}}, "time_zone": "Asia/Tokyo"}
            after = (await ann.patch(PREFERENCES, json=change | {"frequency_limit": 3})).json()
            assert by_type(after)["promotion"] == {"email": False, "push": True}
            assert (after["time_zone"], after["frequency_limit"]) == ("Asia/Tokyo", 3)
        async with service.client(user_token("bob", Scope.DEVICES)) as bob:
            assert (await bob.get(PREFERENCES)).status_code == 404
            assert (await bob.patch(PREFERENCES, json={"enabled": False})).status_code == 404
        assert (await client.get(PREFERENCES)).json() == after


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"types": {"otp": {"enabled": False}}}, "types.otp"),
        ({"types": {"otp": {"channels": {"push": False}}}}, "types.otp"),
        ({"types": {"nothing": {"enabled": False}}}, "types.nothing"),
        ({"types": {"promotion": {"channels": {"fax": False}}}}, "types.promotion.channels.fax"),
        ({"channels": {"fcm": False}}, "channels.fcm"),
        ({"time_zone": "Mars/Base"}, "time_zone"),
        ({"quiet_hours": {"start": "25:00", "end": "07:00"}}, "quiet_hours.start"),
        ({"frequency_limit": 0}, "frequency_limit"),
    ],
)
async def test_a_change_that_makes_no_sense_names_what_does_not(tmp_path: Path, change: Any, path: str) -> None:
    async with choosing(tmp_path) as (_, client):
        refused = await client.patch(PREFERENCES, json=change)
        assert (refused.status_code, [each["path"] for each in refused.json()["faults"]]) == (400, [path])


async def test_one_click_unsubscribes_from_the_type_by_e_mail_and_a_get_does_not(tmp_path: Path) -> None:
    """RFC 8058: a POST without a session, in either form of a form."""
    async with choosing(tmp_path) as (service, client), service.client("none") as anybody:
        del anybody.headers["authorization"]
        link = path_of("promotion", "email")
        page = await anybody.get(link)
        assert (page.status_code, "Unsubscribe from “Offers”" in page.text) == (200, True)
        assert by_type((await client.get(PREFERENCES)).json())["promotion"] == {"email": True, "push": True}
        left = await anybody.post(link, data=ONE_CLICK)
        assert (left.status_code, WORDS["en"].unsubscribed in left.text) == (200, True)
        assert by_type((await client.get(PREFERENCES)).json())["promotion"] == {"email": False, "push": True}
        await anybody.post(path_of("news", "email"), files={"List-Unsubscribe": (None, "One-Click")})
        assert (await client.get(PREFERENCES)).json()["channels"] == {"email": False, "push": True}


async def test_a_link_that_we_did_not_sign_opens_nothing(tmp_path: Path) -> None:
    async with choosing(tmp_path) as (_, client):
        link = path_of("promotion", "email")
        for wrong in (link[:-2] + "AA", link.replace("/demo/", "/other/"), "/p/demo/x", "/p/demo/ä"):
            assert (await client.get(wrong)).status_code == 404
            assert (await client.post(wrong, data=ONE_CLICK)).status_code == 404
        assert (await client.get(PREFERENCES)).json()["changed_at"] is None


async def test_the_form_of_the_page_says_everything_and_a_link_of_the_api_opens_it(tmp_path: Path) -> None:
    async with choosing(tmp_path) as (service, client), service.client("none") as anybody:
        url = (await client.get("/v1/users/ann/preferences/link")).json()["url"]
        page = await anybody.get(url.removeprefix(BASE))
        assert page.headers["referrer-policy"] == "no-referrer" and "script-src" not in page.text
        form = fields(page.text)
        assert form == {"type:push:promotion": "1", "type:email:promotion": "1", "since": "22:00", "until": "07:00"}
        del form["type:push:promotion"]
        saved = await anybody.post(url.removeprefix(BASE), data=form | {"save": "1", "nothing": "1", "since": "23:30"})
        assert fields(saved.text) == {
            "type:email:promotion": "1",
            "since": "23:30",
            "until": "07:00",
            "nothing": "1",
        }
        said = (await client.get(PREFERENCES)).json()
        assert by_type(said) == {"promotion": {"email": True, "push": False}, "otp": {"email": True, "push": True}}
        assert (said["enabled"], said["quiet_hours"]["start"]) == (False, "23:30")


@pytest.mark.parametrize(("header", "language"), [(None, "en"), ("fr-CA, de;q=0.5", "fr"), ("pt, en;q=0.1", "pt-BR")])
async def test_the_page_speaks_the_language_of_the_profile_or_of_the_browser(
    tmp_path: Path, header: str | None, language: str
) -> None:
    async with choosing(tmp_path) as (_, client):
        headers = {} if header is None else {"accept-language": header}
        page = await client.get(path_of(), headers=headers)
        assert f'<html lang="{language}">' in page.text and WORDS[language].title in page.text
        await client.put("/v1/users/ann", json={"locale": "de-CH"})
        page = await client.get(path_of(), headers=headers)
        assert '<html lang="de">' in page.text and "Angebote &amp; mehr" in page.text


@pytest.mark.parametrize("language", WORDS)
async def test_every_field_of_the_page_has_a_label_in_every_language(tmp_path: Path, language: str) -> None:
    async with choosing(tmp_path) as (_, client):
        page = (await client.get(path_of("promotion", "email"), headers={"accept-language": language})).text
        assert f'<html lang="{language}">' in page
        labelled = re.findall(r"<label>(?:[^<]+)?<input[^>]*>(?: [^<]+)?</label>", page)
        assert len(labelled) == page.count("<input") and all(re.search(r">[^<]*\w[^<]*<", each) for each in labelled)
        assert page.count("<fieldset><legend>") == page.count("<fieldset>") == 3


def fields(page: str) -> dict[str, str]:
    """What a browser would post of the page's last form: boxes that are checked, and times."""
    found: dict[str, str] = {}

    class Reader(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            said = dict(attrs)
            if tag == "input" and ("checked" in said or said["type"] != "checkbox"):
                found[str(said["name"])] = str(said["value"])

    Reader().feed(page)
    return found
