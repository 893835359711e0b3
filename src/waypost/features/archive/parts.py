"""The parts that the archive adds to a worker: its manifest, the duty that fills it, and the end of a user in it.

The libraries of files are an optional extra, and are imported where there is an archive alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from waypost.domain.errors import ConfigurationError, ErrorCode, Unavailable
from waypost.domain.extras import how_to_install
from waypost.domain.ids import NotificationId
from waypost.domain.time import DAY_MS, Instant, later
from waypost.features.archive.settings import ArchiveSettings, archives
from waypost.features.parts import FeatureDuty, Ground, Parts
from waypost.ports.archive import Archive, NoArchive
from waypost.ports.clock import Clock
from waypost.ports.erasure import Erasure
from waypost.runtime.roles import Role
from waypost.stores.sql.archive import FILE, TODO
from waypost.stores.sql.archive_faults import FAULT
from waypost.stores.sql.store import Store
from waypost.telemetry import Event, Metric

if TYPE_CHECKING:
    from waypost.features.archive.files import Files
    from waypost.stores.archive.bucket import Bucket, Unsound

EVERY_S = 60.0
"""Seconds between two looks for a day that is over."""


class Looked(dict[NotificationId, Instant]):
    """The times when erasures began to look at all files: their next passes, every two seconds, look at newer ones."""

    limit: Final = 10_000


class Unreached(Exception):
    """The error that a user may be in the archive, whose files cannot be reached: the erasure goes on later."""


def bucket_of(settings: ArchiveSettings) -> Bucket:
    """Open where the files lie; ConfigurationError where that cannot be."""
    assert settings.to is not None, "there is an archive"
    try:
        import pyarrow  # noqa: F401, PLC0415 - an optional extra

        from waypost.stores.archive.bucket import bucket_at  # noqa: PLC0415 - as above

        return bucket_at(settings.to, settings.s3)
    except ModuleNotFoundError:
        raise ConfigurationError("archive.to", f"its libraries are missing: {how_to_install('archive')}") from None
    except OSError as error:
        raise ConfigurationError("archive.s3.secret_access_key_file", f"cannot be read: {error.strerror}") from None


def files_in(
    store: Store, settings: ArchiveSettings, clock: Clock, tells: Callable[[Unsound], None] = lambda _: None
) -> Files:
    """Return the files of the archive, which there is; *tells* of each that is met and is not whole."""
    bucket = bucket_of(settings)
    from waypost.features.archive.files import Files  # noqa: PLC0415 - as above

    return Files(store.archive, bucket, clock, with_content=settings.content == "keep", tells=tells)


def archive_in(store: Store, settings: ArchiveSettings) -> Archive:
    """Return the reads of the archive, which there is."""
    bucket = bucket_of(settings)
    from waypost.features.archive.reading import ReadArchive  # noqa: PLC0415 - as above

    return ReadArchive(store.archive, bucket)


def files_of(ground: Ground) -> Files:
    """Return the files of the archive, which there is."""

    def tell(unsound: Unsound) -> None:
        ground.telemetry.event(Event.ARCHIVE_DAMAGED, path=unsound.path, fault=unsound.fault, why=str(unsound))

    return files_in(ground.store, ground.settings, ground.clock, tell)


def archive_of(ground: Ground) -> Archive:
    """Return the reads of the archive, or of none."""
    return archive_in(ground.store, ground.settings) if archives(ground.config) else NoArchive()


async def move(ground: Ground) -> None:
    """Move into the archive what is old enough."""
    if not archives(ground.config):
        return
    from waypost.features.archive.moving import move as move_old  # noqa: PLC0415 - as above

    before = later(ground.clock.now(), -ground.config.retention.notifications_days * DAY_MS)
    try:
        moved = await move_old(files_of(ground), before)
    except Unavailable as away:
        if away.code is ErrorCode.ARCHIVE_AWAY:  # the store reports its own outage
            ground.telemetry.event(Event.ARCHIVE_AWAY, code=away.code, why=str(away))
        raise
    if moved.unsound:
        ground.telemetry.count(Metric.ARCHIVE_UNSOUND, moved.unsound)
    if moved.notifications:
        ground.telemetry.event(Event.ARCHIVE_DONE, notifications=moved.notifications)
        ground.telemetry.count(Metric.ARCHIVED, moved.notifications)


async def erase(ground: Ground, erasure: Erasure) -> None:
    """Take the user out of the archive's files."""
    manifest = ground.store.archive
    if not await manifest.all(n=1):
        return
    if not archives(ground.config):
        if await manifest.of_user(erasure.app, erasure.user_id, erasure.asked_at):
            raise Unreached
        return
    from waypost.features.archive.erasing import StillInArchive  # noqa: PLC0415 - as above
    from waypost.features.archive.erasing import erase as clear  # noqa: PLC0415 - as above

    looked: Looked = Looked() if ground.memory is None else ground.memory.setdefault(Looked, Looked())
    now, since = ground.clock.now(), looked.get(erasure.id)
    deletes = ground.config.retention.erased == "delete"
    try:
        await clear(files_of(ground), erasure, deletes=deletes, since=since)
    except (Unavailable, StillInArchive) as away:
        raise Unreached from away
    if len(looked) >= Looked.limit:
        looked.clear()
    looked.setdefault(erasure.id, now)


PARTS = Parts(
    tables=(FILE, TODO, FAULT),
    duties=(FeatureDuty("archive", Role.SWEEP, EVERY_S, move),),
    erases=erase,
)
