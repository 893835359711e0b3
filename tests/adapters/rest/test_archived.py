"""What left the store for the archive, as the API finds it."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.adapters.rest.service import Service, served, shown
from tests.shows import shows
from waypost.domain.settlement import Sent
from waypost.domain.time import DAY_MS, later
from waypost.entrypoints.rest.app import build_app
from waypost.features.archive.files import Files
from waypost.features.archive.moving import move
from waypost.features.archive.reading import ReadArchive
from waypost.stores.archive.bucket import Folder

pytestmark = [pytest.mark.asyncio, pytest.mark.usefixtures("on_file")]


async def archived(service: Service, folder: Path) -> int:
    """Move what is older than 90 days into a folder, where the API looks from now on."""
    bucket, manifest = Folder(folder), service.stores.archive
    service.api = replace(service.api, archive=ReadArchive(manifest, bucket))
    service.app = build_app(service.api)
    return (await move(Files(manifest, bucket, service.clock), later(service.clock.now(), -90 * DAY_MS))).notifications


@shows("S3-78")
async def test_day_91_is_read_and_listed_as_archived(tmp_path: Path) -> None:
    async with served() as (service, client):
        ids: list[str] = []
        for user in ("ann", "bob", "ann"):
            made = await client.post("/v1/notifications", json=shown(user, body=f"{user} {len(ids)}"))
            ids.append(made.json()["id"])
            await service.settled(Sent("provider-id"))
            service.clock.advance(DAY_MS)
        before = (await client.get(f"/v1/notifications/{ids[0]}")).json()
        service.clock.advance(100 * DAY_MS)
        young = (await client.post("/v1/notifications", json=shown("ann"))).json()["id"]
        assert await archived(service, tmp_path) == 3
        async with service.client() as caller:
            after = (await caller.get(f"/v1/notifications/{ids[0]}")).json()
            assert after["notification"].pop("archived") is True
            assert after == before
            hot = (await caller.get("/v1/notifications")).json()
            assert [each["id"] for each in hot["items"]] == [young]
            assert "archived" not in hot["items"][0]
            cold = (await caller.get("/v1/notifications?archived=true&user_id=ann&limit=1")).json()
            assert [(each["id"], each["archived"]) for each in cold["items"]] == [(ids[2], True)]
            rest = await caller.get(f"/v1/notifications?archived=true&user_id=ann&limit=5&cursor={cold['next']}")
            assert [each["id"] for each in rest.json()["items"]] == [ids[0]]
            assert rest.json()["next"] is None
        async with service.client(service.others.text) as stranger:
            assert (await stranger.get(f"/v1/notifications/{ids[0]}")).status_code == 404


async def test_an_archive_that_cannot_be_reached_is_said(tmp_path: Path) -> None:
    async with served() as (service, client):
        made = (await client.post("/v1/notifications", json=shown("ann"))).json()["id"]
        await service.settled(Sent("provider-id"))
        service.clock.advance(100 * DAY_MS)
        await archived(service, tmp_path / "archive")
        (tmp_path / "archive").rename(tmp_path / "elsewhere")
        async with service.client() as caller:
            for path in (f"/v1/notifications/{made}", "/v1/notifications?archived=true"):
                answer = await caller.get(path)
                assert (answer.status_code, answer.json()["code"]) == (503, "archive_away")
