"""The archive as the command line uses it: the store's manifest, and the files."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import msgspec

from waypost.bootstrap.admin import here, open_admin_store
from waypost.config import Config
from waypost.domain.errors import ConfigurationError, Conflict, NotFound
from waypost.domain.ids import AppId, NotificationId
from waypost.entrypoints.rest.views import whole
from waypost.features.archive.parts import archive_in, files_in
from waypost.features.archive.said import Said, said
from waypost.features.archive.settings import ArchiveSettings, archives
from waypost.ports.audit import Act, Ordered
from waypost.runtime.clock import SystemClock
from waypost.stores.sql.store import Store

if TYPE_CHECKING:
    from waypost.features.archive.knowing import Checked, Known

_PAGE = 500


async def list_files(config: Config, app: str | None) -> list[Said]:
    """List the files of the manifest, of one app or of all, oldest first."""
    async with open_admin_store(config) as store:
        after: tuple[str, bytes] = (app or "", b"")
        found: list[Said] = []
        while page := await store.archive.all(after, _PAGE):
            found += [said(each) for each in page if app in (None, each.app)]
            if app not in (None, page[-1].app):
                break
            after = page[-1].app, page[-1].first_id
        return found


async def show(config: Config, notification_id: NotificationId) -> dict[str, Any]:
    """Return a notification of the archive as the API shows it; NotFound where no app has it there."""
    async with _opened(config) as (store, settings):
        for app in config.apps:
            detail = await archive_in(store, settings).detail(AppId(app), notification_id)
            if detail is not None:
                return msgspec.to_builtins(whole(detail))  # type: ignore[no-any-return]  # a struct is a dict then
    raise NotFound("the archive has no such notification")


async def verified(config: Config) -> AsyncIterator[Checked]:
    """Read every file, and yield what is wrong with each."""
    async with _opened(config) as (store, settings):
        files = files_in(store, settings, SystemClock())
        from waypost.features.archive.knowing import verify  # noqa: PLC0415 - its libraries are an optional extra

        async for each in verify(files):
            yield each


async def restored(config: Config) -> AsyncIterator[Known]:
    """Put into the manifest what lies there and is not in it, without those who were erased since."""
    async with _opened(config) as (store, settings):
        files = files_in(store, settings, SystemClock())
        from waypost.features.archive.knowing import Forgotten, know_again  # noqa: PLC0415 - as above

        forgotten = Forgotten(store.erasures, deletes=config.retention.erased == "delete")
        async for each in know_again(files, forgotten):
            yield each


async def give_up(config: Config, path: str) -> Said:
    """Take a file that is lost or damaged out of the manifest; Conflict where it is whole."""
    async with _opened(config) as (store, settings):
        clock = SystemClock()
        files = files_in(store, settings, clock)
        file = await store.archive.of_path(path)
        if file is None:
            raise NotFound("the store knows no such file; `waypost archive list` names them")
        if await files.is_whole(file):
            raise Conflict("the file is whole: nothing of it is given up")
        by, origin = here()
        await store.audit.record([Ordered(clock.now(), file.app, by, origin, Act.ARCHIVE_FILE_GIVEN_UP, file.path)])
        await files.give_up(file)
        return said(file)


@asynccontextmanager
async def _opened(config: Config) -> AsyncIterator[tuple[Store, ArchiveSettings]]:
    if not archives(config):
        raise ConfigurationError("archive.to", "says of no archive")
    settings: ArchiveSettings = config.features["archive"]
    async with open_admin_store(config) as store:
        yield store, settings
