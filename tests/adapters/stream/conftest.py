"""The drop-in at work: real Redis and PostgreSQL as their owner would have them, and the lab as FCM."""

from __future__ import annotations

import asyncio
import shutil
from asyncio import AbstractEventLoop as Loop
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
import pytest_asyncio
import uvloop

from tests.adapters.stream.owner import LOG, SILENT_MS, TOKENS, Lines, Owner, until
from waypost.bootstrap.drop_in import consume
from waypost.config.drop_in import drop_in
from waypost.lab import Lab, LabSettings

Serving = Callable[..., AbstractAsyncContextManager[Lines]]


def pytest_asyncio_loop_factories(config: pytest.Config, item: pytest.Item) -> dict[str, Callable[[], Loop]]:
    """The event loop of the product."""
    return {"uvloop": uvloop.new_event_loop}


@pytest_asyncio.fixture
async def lab(tmp_path: Path, credentials: Path) -> AsyncIterator[Lab]:
    """A running lab."""
    shutil.copytree(credentials, tmp_path, dirs_exist_ok=True)
    lab = Lab(LabSettings(directory=tmp_path, apns_port=0, fcm_port=0, webpush_port=0, oauth_port=0, admin_port=0))
    await lab.start()
    yield lab
    await lab.stop()


@pytest.fixture
def owner(postgres_url: str, redis_url: str) -> Iterator[Owner]:
    """Their tables: tokens, and no log yet."""
    owner = Owner(postgres_url, redis_url)
    owner.sql(TOKENS)
    yield owner
    owner.close()


@pytest.fixture
def owner_of_log(owner: Owner) -> Owner:
    """The same with a log of their own making."""
    owner.sql(LOG)
    return owner


@pytest.fixture
def environment(owner: Owner, lab: Lab) -> dict[str, str]:
    """The variables."""
    return {
        "REDIS_URL": owner.redis_url,
        "DATABASE_URL": f"{owner.postgres_url}?schema=public",
        "GOOGLE_APPLICATION_CREDENTIALS": str(lab.settings.directory / "fcm.json"),
        "FCM_ENDPOINT": lab.urls.fcm,
        "FCM_CA_FILE": str(lab.settings.directory / "ca.pem"),
        "AUTOCLAIM_MIN_IDLE_MS": str(SILENT_MS),
    }


@pytest.fixture
def serving(environment: dict[str, str]) -> Serving:
    """Serves until the end of its block; gives the log."""

    @asynccontextmanager
    async def at_work(**more: str) -> AsyncIterator[Lines]:
        settings = drop_in(environment | more)
        lines, stop = Lines(), asyncio.Event()
        running = asyncio.create_task(consume(settings, lines, stop))
        try:
            await until(lambda: running.done() or lines.of("process.ready"))
            yield lines
        finally:
            stop.set()
            await running

    return at_work


def sent(lab: Lab) -> Sequence[dict[str, Any]]:
    """The messages that the lab judged, as they came."""
    contents = [lab.records.content(record.seq) for record in lab.records.since(0) if record.gateway == "fcm"]
    return [msgspec.json.decode(each.body)["message"] for each in contents if each is not None]
