"""A file of the archive that is lost or damaged, on both engines: it is named, and nothing else stops."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
import pytest_asyncio
from msgspec.structs import replace

from tests.contract.archiving import KEEP_DAYS, ArchiveBench, Fate, Killed, day
from tests.contract.bench import APP, OTHER_APP, Bench
from tests.contract.sql import SqlUnderTest
from tests.unit.adapters.noted import Noted
from waypost.bootstrap.features import parts_of
from waypost.config import Config
from waypost.domain.ids import UserId
from waypost.domain.notification import Notification
from waypost.domain.time import DAY_MS, SECOND_MS, later
from waypost.features.archive import ARCHIVE
from waypost.features.archive.erasing import StillInArchive, erase
from waypost.features.archive.files import Files
from waypost.features.archive.moving import Moved, move
from waypost.features.archive.settings import ArchiveSettings
from waypost.ports.archive import Fault
from waypost.ports.erasure import Erasure
from waypost.ports.views import HistoryQuery
from waypost.stores.archive.bucket import ArchiveAway, Unsound
from waypost.telemetry import Event, Metric

pytestmark = pytest.mark.asyncio


@pytest_asyncio.fixture
async def archive(ledger_store: SqlUnderTest, tmp_path: Path) -> ArchiveBench:
    """An empty store with an empty archive."""
    return ArchiveBench(Bench(ledger_store, (await ledger_store.open_workers(1))[0]), tmp_path / "archive")


class Round:
    """One round of the duty, and what it told."""

    def __init__(self, archive: ArchiveBench) -> None:
        self.told: list[Unsound] = []
        self._archive = archive

    async def moved(self) -> Moved:
        """Move what is old enough."""
        archive = self._archive
        files = Files(archive.store.archive, archive.bucket, archive.bench.clock, tells=self.told.append)
        return await move(files, later(archive.bench.now, -KEEP_DAYS * DAY_MS))


def damaged(file: Path) -> bytes:
    """Change one byte of what was received, from where the ids and the rest are read as ever; what the file was."""
    before = file.read_bytes()
    footer = int.from_bytes(before[-8:-4], "little")
    at = len(before) - 8 - footer - 4
    file.write_bytes(before[:at] + bytes([before[at] ^ 0xFF]) + before[at + 1 :])
    return before


def lost(file: Path) -> bytes:
    """Delete a file; what it was."""
    before = file.read_bytes()
    file.unlink()
    return before


async def with_a_late_row(archive: ArchiveBench) -> tuple[Notification, list[Notification], Path]:
    """A row that came late into the file of its day; rows of other days and of another app; and that file."""
    early = await archive.finished("bob")
    archive.bench.clock.advance(SECOND_MS)
    late = await archive.accepted("ann", in_days=5)
    archive.bench.clock.advance(SECOND_MS)
    later_that_day = await archive.finished("cyd")
    day(archive.bench, 5)
    await archive.finish(late)
    day(archive.bench, 88)
    assert await archive.moved() == 2
    (file,) = await archive.store.archive.all()
    others = [await archive.finished("ann"), await archive.finished("dot", app=OTHER_APP)]
    day(archive.bench, 100)
    return late, [early, later_that_day, *others], archive.folder / file.path


@pytest.mark.parametrize(("harm", "fault"), [(lost, Fault.AWAY), (damaged, Fault.CHANGED)])
async def test_what_belongs_into_a_file_that_is_not_whole_waits_and_nothing_else(
    archive: ArchiveBench, harm: object, fault: Fault
) -> None:
    """It is told once, counted in every round, and over once the file is back."""
    late, others, path = await with_a_late_row(archive)
    whole = harm(path)  # type: ignore[operator]  # one of two functions
    first, second = Round(archive), Round(archive)
    assert await first.moved() == Moved(2, unsound=1)
    assert [(each.path, each.fault) for each in first.told] == [(str(path.relative_to(archive.folder)), fault)]
    assert (await second.moved(), second.told) == (Moved(0, unsound=1), [])
    assert await archive.hot() == [late.id]
    assert (await archive.hot(OTHER_APP), await archive.cold(OTHER_APP)) == ([], [others[-1].id])
    assert [each.fault for each in await archive.store.archive.faults.all()] == [fault]
    path.write_bytes(whole)
    assert await Round(archive).moved() == Moved(1, unsound=0)
    assert await archive.store.archive.faults.all() == []
    await archive.all_there_once([late, *others])
    await archive.nothing_left_over()


async def test_what_fits_beside_a_file_that_is_not_whole_gets_one_of_its_own(archive: ArchiveBench) -> None:
    """It lies behind all that the file has: nothing has to wait."""
    early = await archive.finished("bob")
    archive.bench.clock.advance(SECOND_MS)
    late = await archive.accepted("ann", in_days=5)
    day(archive.bench, 5)
    await archive.finish(late)
    day(archive.bench, 88)
    assert await archive.moved() == 1
    (file,) = await archive.store.archive.all()
    day(archive.bench, 5)
    whole = lost(archive.folder / file.path)
    assert await Round(archive).moved() == Moved(1, unsound=1)
    assert await archive.hot() == []
    (archive.folder / file.path).write_bytes(whole)
    assert await Round(archive).moved() == Moved(0, unsound=0)
    await archive.all_there_once([early, late])


@pytest.mark.parametrize("harm", [lost, damaged])
async def test_no_row_leaves_the_store_whose_file_cannot_be_shown_to_be_whole(
    archive: ArchiveBench, harm: object
) -> None:
    """The process ends after the file is known; its ids can still be read, what it says of them cannot."""
    made = await archive.finished("ann")
    day(archive.bench, 1)
    other = await archive.finished("bob", app=OTHER_APP)
    day(archive.bench, 92)
    with pytest.raises(Killed):
        await archive.moved(Fate(name="after place"))
    (file,) = await archive.store.archive.all()
    whole = harm(archive.folder / file.path)  # type: ignore[operator]  # one of two functions
    assert await Round(archive).moved() == Moved(1, unsound=1)
    assert await archive.hot() == [made.id]
    (archive.folder / file.path).write_bytes(whole)
    assert await Round(archive).moved() == Moved(1, unsound=0)
    await archive.all_there_once([made, other])


async def test_a_file_that_is_given_up_makes_room_for_what_the_store_has_of_it(archive: ArchiveBench) -> None:
    late, others, path = await with_a_late_row(archive)
    damaged(path)
    await Round(archive).moved()
    files = archive.files()
    (marked,) = await archive.store.archive.faults.all()
    file = await archive.store.archive.of_path(marked.path)
    assert file is not None and not await files.is_whole(file)
    await files.give_up(file)
    assert not path.exists()
    assert await Round(archive).moved() == Moved(1, unsound=0)
    assert await archive.store.archive.faults.all() == []
    await archive.all_there_once([late, *others[2:]])
    await archive.nothing_left_over()


@pytest.mark.parametrize("is_mended", [True, False])
async def test_an_erasure_clears_the_other_files_and_waits_for_the_one_that_is_damaged(
    archive: ArchiveBench, is_mended: bool
) -> None:
    """Until the duty of the archive has seen that it is mended, so that not each pass reads it, or it is given up."""
    for _ in range(2):
        await archive.finished("her")
        day(archive.bench, 1)
    day(archive.bench, 100)
    await archive.moved()
    harmed, sound = await archive.store.archive.all()
    whole = damaged(archive.folder / harmed.path)
    order = Erasure((await archive.accepted()).id, APP, UserId("her"), UserId("erased-1"), archive.bench.now)
    with pytest.raises(StillInArchive):
        await erase(archive.files(), order, deletes=True)
    assert await archive.store.archive.all() == [harmed]
    assert not (archive.folder / sound.path).exists()
    if is_mended:
        (archive.folder / harmed.path).write_bytes(whole)
        with pytest.raises(StillInArchive):
            await erase(archive.files(), order, deletes=True)
        await archive.moved()
    else:
        await archive.files().give_up(harmed)
    await erase(archive.files(), order, deletes=True)
    assert archive.bucket.paths() == []


async def test_who_looks_into_a_damaged_file_is_told_that_it_cannot_be_read(archive: ArchiveBench) -> None:
    made = await archive.finished("ann")
    day(archive.bench, 92)
    await archive.moved()
    (file,) = await archive.store.archive.all()
    (archive.folder / file.path).write_bytes(b"PAR1 and nothing of it")
    for read in (archive.reads.detail(APP, made.id), archive.reads.history(HistoryQuery(APP))):
        with pytest.raises(ArchiveAway, match=file.path):
            await read


async def test_the_duty_names_the_file_once_and_counts_it_in_each_round(archive: ArchiveBench) -> None:
    """By the event and the counter of the alert; what else is old leaves the store."""
    await with_a_late_row(archive)
    (file,) = await archive.store.archive.all()
    lost(archive.folder / file.path)
    archive.under_test.config = Config(apps={}, features={"archive": ArchiveSettings(to=str(archive.folder))})
    noted = Counting()
    ground = replace(archive.under_test.ground_of(archive.bench.worker, ARCHIVE), telemetry=noted)
    (duty,) = parts_of(ARCHIVE).duties
    for _ in range(2):
        await duty.act(ground)
    (told,) = noted.fields_of(Event.ARCHIVE_DAMAGED)
    assert (told["path"], told["fault"]) == (file.path, Fault.AWAY)
    assert noted.counted == {Metric.ARCHIVE_UNSOUND: 2, Metric.ARCHIVED: 2}
    assert await archive.cold(OTHER_APP) != []


class Counting(Noted):
    """A sink that also counts."""

    def __init__(self) -> None:
        super().__init__()
        self.counted: Counter[Metric] = Counter()

    def count(self, metric: Metric, n: float = 1, /, **labels: str) -> None:
        """See Telemetry."""
        self.counted[metric] += int(n)
