"""The end of a user in the archive, on both engines: no file has them any more, wherever a process ends meanwhile."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
import pytest_asyncio

from tests.contract.archiving import ArchiveBench, day, until_it_ends
from tests.contract.bench import APP, OTHER_APP, Bench
from tests.contract.erasure_features import HER, MARKER
from tests.contract.sql import SqlUnderTest
from tests.shows import shows
from waypost.bootstrap.features import parts_of
from waypost.config import Config
from waypost.domain.content import Content
from waypost.domain.ids import UserId
from waypost.domain.time import HOUR_MS
from waypost.features.archive import ARCHIVE
from waypost.features.archive.erasing import erase
from waypost.features.archive.parts import Unreached
from waypost.features.archive.settings import ArchiveSettings
from waypost.ports.erasure import ERASED_DEVICE, Erasure
from waypost.stores.archive.parquet import read

pytestmark = pytest.mark.asyncio


@pytest_asyncio.fixture
async def archive(ledger_store: SqlUnderTest, tmp_path: Path) -> ArchiveBench:
    """An empty store with an empty archive."""
    return ArchiveBench(Bench(ledger_store, (await ledger_store.open_workers(1))[0]), tmp_path / "archive")


async def ordered(archive: ArchiveBench) -> Erasure:
    """The order to forget her."""
    order = Erasure((await archive.accepted("clerk")).id, APP, HER, UserId("erased-01"), archive.bench.now)
    return await archive.bench.store.erasures_of(archive.bench.worker).ask(order)


def said_in_files(archive: ArchiveBench) -> bytes:
    """All that the files say, unpacked."""
    files = [archive.bucket.get(path) for path in archive.bucket.paths()]
    packed = [msgspec.json.encode(read(data)) for data in files if data.startswith(b"PAR1")]
    return b"".join([*files, *packed])


@shows("S3-26")
@pytest.mark.parametrize("deletes", [False, True])
async def test_no_file_has_the_user_any_more_and_others_are_as_they_were(archive: ArchiveBench, deletes: bool) -> None:
    hers, before = [], []
    for _ in range(2):
        hers.append(await archive.finished(HER, body=f"{MARKER} body"))
        before.append(await archive.finished("bob"))
        day(archive.bench, 1)
    foreign = await archive.finished(HER, app=OTHER_APP)
    day(archive.bench, 100)
    assert await archive.moved() == 5
    assert MARKER.encode() in said_in_files(archive)
    of_bob = [await archive.reads.detail(APP, each.id) for each in before]
    await erase(archive.files(), await ordered(archive), deletes=deletes)
    await archive.nothing_left_over()
    left = [each for each in await archive.cold_records() if each.notification.user_id != "bob"]
    assert await archive.cold(user=HER) == []
    assert [each.notification.user_id for each in left] == ([] if deletes else ["erased-01"] * 2)
    for each in hers:
        detail = await archive.reads.detail(APP, each.id)
        assert deletes is (detail is None)
        if detail is not None:
            assert detail.record.notification.content == Content()
            assert [(one.device_id, one.provider_id, one.attempts) for one in detail.receipts] == [
                (ERASED_DEVICE, None, ())
            ]
    assert [await archive.reads.detail(APP, each.id) for each in before] == of_bob
    assert await archive.cold(OTHER_APP, HER) == [foreign.id]


async def test_where_every_row_of_a_file_was_theirs_the_file_is_gone(archive: ArchiveBench) -> None:
    await archive.finished(HER)
    day(archive.bench, 100)
    await archive.moved()
    await erase(archive.files(), await ordered(archive), deletes=True)
    assert archive.bucket.paths() == []
    assert await archive.store.archive.all() == []


async def test_an_erasure_that_ends_at_any_step_is_carried_on(archive: ArchiveBench) -> None:
    """Others are there once all the time, and in the end no file has her and none is left over."""
    others = []
    for _ in range(10):
        await archive.finished(HER, body=f"{MARKER} body")
        others.append(await archive.finished("bob"))
        day(archive.bench, 1)
    day(archive.bench, 100)
    await archive.moved()
    order = await ordered(archive)

    async def check() -> None:
        assert sorted(await archive.cold(user="bob")) == sorted(each.id for each in others)
        archive.bench.clock.advance(HOUR_MS + 1)

    killed_at = await until_it_ends(lambda fate: erase(archive.files(fate), order, deletes=False), check)
    steps = {"begin", "put", "get", "place", "delete", "done"}
    assert killed_at >= {f"{when} {step}" for when in ("before", "after") for step in steps}
    await archive.nothing_left_over()
    assert MARKER.encode() not in said_in_files(archive)
    assert len(await archive.cold()) == 20


async def test_an_archive_that_cannot_be_reached_holds_the_erasure_of_those_who_are_in_it(
    archive: ArchiveBench,
) -> None:
    """Also where it was turned off; nobody else waits."""
    await archive.finished(HER)
    day(archive.bench, 100)
    await archive.moved()
    order = await ordered(archive)
    erases = parts_of(ARCHIVE).erases
    assert erases is not None
    for settings in (ArchiveSettings(), ArchiveSettings(to=str(archive.folder / "not here"))):
        archive.under_test.config = Config(apps={}, features={"archive": settings})
        ground = archive.under_test.ground_of(archive.bench.worker, ARCHIVE)
        with pytest.raises(Unreached):
            await erases(ground, order)
        await erases(ground, msgspec.structs.replace(order, user_id=UserId("nobody")))


async def test_the_next_pass_of_an_erasure_looks_at_what_came_since_alone(archive: ArchiveBench) -> None:
    """A file whose rows were read before the first pass may come into the manifest after it."""
    await archive.finished(HER)
    day(archive.bench, 100)
    await archive.moved()
    order, began = await ordered(archive), archive.bench.now
    (old,) = await archive.store.archive.all()
    day(archive.bench, 1)
    await erase(archive.files(), order, deletes=True, since=archive.bench.now)
    assert await archive.store.archive.all() == [old], "it was there long before the first pass"
    await erase(archive.files(), order, deletes=True, since=began)
    assert await archive.store.archive.all() == []
