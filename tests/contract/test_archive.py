"""The contract of the archive, on both engines: nothing is lost, nothing is there twice, wherever a process ends."""

from __future__ import annotations

from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest
import pytest_asyncio

from tests.contract.archiving import ArchiveBench, day, until_it_ends
from tests.contract.bench import APP, OTHER_APP, Bench
from tests.contract.sql import SqlUnderTest
from tests.shows import shows
from waypost.domain.ids import AppId, NotificationId, UserId, format_id
from waypost.domain.status import NotificationStatus
from waypost.domain.time import DAY_MS, HOUR_MS, later
from waypost.features.archive.moving import move
from waypost.features.archive.reading import ReadArchive
from waypost.ports.archive import ArchiveFile
from waypost.ports.erasure import Erasure
from waypost.ports.views import HistoryQuery, NotificationDetail
from waypost.stores.archive.bucket import ArchiveAway
from waypost.stores.sql.archive import Placing, SqlArchive

pytestmark = pytest.mark.asyncio


@pytest_asyncio.fixture
async def archive(ledger_store: SqlUnderTest, tmp_path: Path) -> ArchiveBench:
    """An empty store with an empty archive."""
    return ArchiveBench(Bench(ledger_store, (await ledger_store.open_workers(1))[0]), tmp_path / "archive")


async def whole(archive: ArchiveBench, app: AppId, made: NotificationId) -> NotificationDetail:
    """What is known of a notification, wherever it is."""
    found = await archive.under_test.views.detail(app, made) or await archive.reads.detail(app, made)
    assert found is not None
    return found


@shows("S3-78")
async def test_day_91_is_not_in_the_store_and_is_found_as_it_was(archive: ArchiveBench) -> None:
    """What is younger stays, what is open stays, and each is in the files of its own app and day."""
    old, other = await archive.finished("ann"), await archive.finished("bob", app=OTHER_APP)
    still_open = await archive.accepted("cyd")
    day(archive.bench, 1)
    next_day = await archive.finished("ann")
    day(archive.bench, 30)
    young = await archive.finished("ann")
    told = await whole(archive, APP, old.id)
    assert await archive.moved() == 0
    day(archive.bench, 61)
    assert await archive.moved() == 3
    assert await archive.moved() == 0
    assert sorted(await archive.hot()) == sorted([still_open.id, young.id])
    assert await archive.cold() == [next_day.id, old.id]
    assert await archive.cold(OTHER_APP) == [other.id]
    found = await archive.reads.detail(APP, old.id)
    assert found is not None
    assert found.record.archived
    assert msgspec.structs.replace(found, record=msgspec.structs.replace(found.record, archived=False)) == told
    assert await archive.reads.detail(OTHER_APP, old.id) is None
    assert await archive.reads.detail(APP, young.id) is None
    assert len(await archive.store.archive.all()) == 3
    await archive.nothing_left_over()


async def test_what_is_said_beside_a_file_is_what_is_in_it(archive: ArchiveBench) -> None:
    first, last = await archive.finished(), await archive.finished()
    day(archive.bench, 92)
    await archive.moved()
    (file,) = await archive.store.archive.all()
    data = (archive.folder / file.path).read_bytes()
    said = msgspec.json.decode((archive.folder / f"{file.path}.json").read_bytes())
    assert said["path"] == file.path
    assert said["sha256"] == sha256(data).hexdigest() == file.sha256.hex()
    assert (said["rows"], said["bytes"], said["layout"]) == (2, len(data), 1)
    assert [said["first_id"], said["last_id"]] == sorted(map(format_id, (first.id, last.id)))
    assert file.path.startswith(f"demo/{said['first_created_at'][:10]}/")


async def test_what_came_late_goes_into_the_file_of_its_day(archive: ArchiveBench) -> None:
    """It was open while the rest of its day was archived; the day has one file, and the old one is gone."""
    early = await archive.accepted("ann", in_days=5)
    rest = [await archive.finished("bob") for _ in range(3)]
    day(archive.bench, 5)
    late = early
    await archive.finish(late)
    day(archive.bench, 87)
    assert await archive.moved() == 3
    assert late.id in await archive.hot()
    day(archive.bench, 5)
    assert await archive.moved() == 1
    assert await archive.hot() == []
    assert await archive.cold() == sorted([late.id, *(each.id for each in rest)], reverse=True)
    assert len(await archive.store.archive.all()) == 1
    await archive.nothing_left_over()


class Stale:
    """A manifest that says once what was true before."""

    def __init__(self, manifest: SqlArchive, file: ArchiveFile) -> None:
        self._manifest = manifest
        self._said = [file]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._manifest, name)

    async def at_or_below(self, *asked: Any) -> ArchiveFile | None:
        return self._said.pop() if self._said else await self._manifest.at_or_below(*asked)

    async def newest(self, *asked: Any) -> tuple[list[ArchiveFile], NotificationId | None]:
        return ([self._said.pop()], None) if self._said else await self._manifest.newest(*asked)


async def test_who_reads_while_a_file_is_replaced_finds_what_is_in_the_new_one(archive: ArchiveBench) -> None:
    """And who reads one that is truly gone is told so."""
    late, early = await archive.accepted(in_days=5), await archive.finished()
    day(archive.bench, 5)
    await archive.finish(late)
    day(archive.bench, 87)
    await archive.moved()
    (before,) = await archive.store.archive.all()
    day(archive.bench, 5)
    await archive.moved()
    (after,) = await archive.store.archive.all()
    assert not (archive.folder / before.path).exists()

    def reads() -> ReadArchive:
        stale: Any = Stale(archive.store.archive, before)
        return ReadArchive(stale, archive.bucket)

    detail = await reads().detail(APP, early.id)
    assert detail is not None and detail.record.notification.id == early.id
    page = await reads().history(HistoryQuery(APP))
    assert {each.notification.id for each in page.records} == {early.id, late.id}
    (archive.folder / after.path).unlink()
    for read in (reads().detail(APP, early.id), reads().history(HistoryQuery(APP))):
        with pytest.raises(ArchiveAway):
            await read


async def test_a_day_of_many_has_several_files_that_do_not_overlap(archive: ArchiveBench) -> None:
    """One that lies between two files, or in one, is found as the others are."""
    late = await archive.accepted("late", in_days=2)
    made = [await archive.finished(f"user-{n % 3}") for n in range(7)]
    day(archive.bench, 2)
    await archive.finish(late)
    day(archive.bench, 89)
    assert await archive.moved(rows=3) == 7
    day(archive.bench, 3)
    assert await archive.moved(rows=3) == 1
    files = await archive.store.archive.all()
    assert len(files) >= 3
    for before, after in pairwise(files):
        assert before.last_id < after.first_id
    await archive.all_there_once([late, *made])
    ours = [each.id for each in made if each.user_id == "user-1"]
    assert await archive.cold(user="user-1", limit=1) == sorted(ours, reverse=True)
    page = await archive.reads.history(HistoryQuery(APP, statuses=(NotificationStatus.FAILED,)))
    assert page.records == ()


@shows("S3-78")
async def test_a_process_that_ends_at_any_step_loses_nothing_and_leaves_nothing_twice(archive: ArchiveBench) -> None:
    made = []
    for n in range(14):
        made.append(await archive.finished(f"user-{n % 2}"))
        day(archive.bench, 0.5)
    day(archive.bench, 100)

    async def check() -> None:
        await archive.all_there_once(made)
        archive.bench.clock.advance(HOUR_MS + 1)

    killed_at = await until_it_ends(lambda fate: archive.moved(fate, rows=1), check)
    steps = {"begin", "put", "get", "place", "drop", "done"}
    assert killed_at >= {f"{when} {step}" for when in ("before", "after") for step in steps}
    assert await archive.hot() == []
    await archive.all_there_once(made)
    archive.bench.clock.advance(HOUR_MS + 1)
    await archive.nothing_left_over()


async def test_what_is_erased_while_its_file_is_written_is_written_anew(archive: ArchiveBench) -> None:
    """The file that has the user is not taken, and is gone; the next round archives what is left of them."""
    made = await archive.finished("her")
    day(archive.bench, 92)
    files, bench = archive.files(), archive.bench
    order = Erasure(made.id, APP, UserId("her"), UserId("erased-1"), bench.now)
    place = files.manifest.place

    async def erased_before(placing: Placing) -> bool:
        await bench.store.erasures_of(bench.worker).blank(order, 10)
        assert len(archive.bucket.paths()) == 2
        return await place(placing)

    files.manifest.place = erased_before  # type: ignore[method-assign]  # the moment between reading and placing
    assert (await move(files, later(bench.now, -90 * DAY_MS))).notifications == 0
    assert archive.bucket.paths() == []
    assert await archive.hot() == [made.id]
    files.manifest.place = place  # type: ignore[method-assign]  # as it was
    assert await archive.moved() == 1
    assert [each.notification.user_id for each in await archive.cold_records()] == ["erased-1"]
    await archive.nothing_left_over()


async def test_retention_waits_for_the_archive(archive: ArchiveBench) -> None:
    """Also where months go whole: what is not archived yet stays, and goes once it is."""
    made = await archive.finished()
    day(archive.bench, 200)
    retention = archive.store.archive.retention
    before = later(archive.bench.now, -90 * DAY_MS)
    await retention.drop_whole(before)
    assert await retention.drop_before(before, 10) == 0
    assert await archive.hot() == [made.id]
    await archive.moved()
    day(archive.bench, 1)
    await retention.drop_whole(later(before, DAY_MS))
    await archive.all_there_once([made])
    assert await archive.hot() == []


async def test_a_user_is_looked_for_in_their_files_alone(archive: ArchiveBench) -> None:
    for n in range(6):
        await archive.finished(f"user-{n}")
        day(archive.bench, 1)
    day(archive.bench, 100)
    await archive.moved()
    found, end = await archive.store.archive.newest(APP, UserId("user-3"), None, 100)
    assert (len(found), end) == (1, None)
    assert (await archive.store.archive.newest(APP, UserId("nobody"), None, 100))[0] == []
