"""The archive's files and the manifest held against each other, on both engines."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest
import pytest_asyncio

from tests.contract.archiving import ArchiveBench, Fate, Killed, day, until_it_ends
from tests.contract.bench import APP, Bench
from tests.contract.sql import SqlUnderTest
from waypost.domain.ids import UserId
from waypost.domain.notification import Notification
from waypost.domain.time import HOUR_MS
from waypost.features.archive.erasing import erase
from waypost.features.archive.files import BESIDE
from waypost.features.archive.knowing import Checked, Forgotten, Known, know_again, verify
from waypost.ports.archive import Fault
from waypost.ports.erasure import Erasure
from waypost.stores.sql.archive import FILE, TODO
from waypost.stores.sql.transaction import OperationKind, Transaction

pytestmark = pytest.mark.asyncio


@pytest_asyncio.fixture
async def archive(ledger_store: SqlUnderTest, tmp_path: Path) -> ArchiveBench:
    """Three days in an archive."""
    made = ArchiveBench(Bench(ledger_store, (await ledger_store.open_workers(1))[0]), tmp_path / "archive")
    for user in ("ann", "bob", "cyd"):
        await made.finished(user)
        day(made.bench, 1)
    day(made.bench, 100)
    assert await made.moved() == 3
    return made


async def checked(archive: ArchiveBench) -> list[Checked]:
    return [each async for each in verify(archive.files())]


async def known(archive: ArchiveBench, *, deletes: bool = False) -> list[Known]:
    forgotten = Forgotten(archive.store.erasures, deletes)
    return [each async for each in know_again(archive.files(), forgotten)]


async def forgotten(archive: ArchiveBench) -> None:
    """The store is one of before: it knows no file."""
    await archive.store.database.commits.submit(_FORGETTING, None)


def _forget(transaction: Transaction, times: Sequence[None]) -> list[None]:
    for table in (FILE, TODO):
        transaction.connection.execute(f"DELETE FROM {table.name}")  # noqa: S608 - our own tables
    return list(times)


_FORGETTING: OperationKind[None, None] = OperationKind("forget_archive", _forget, durable=False)


async def test_what_is_sound_is_said_and_what_is_not_by_its_path(archive: ArchiveBench) -> None:
    assert [(each.fault, each.rows) for each in await checked(archive)] == [(None, 1)] * 3
    gone, changed, untold = [file.path for file in await archive.store.archive.all()]
    (archive.folder / gone).unlink()
    with (archive.folder / changed).open("ab") as file:
        file.write(b"x")
    (archive.folder / f"{untold}{BESIDE}").write_bytes(b"{")
    archive.bucket.put("demo/else.parquet", b"")
    faults = {each.path: each.fault for each in await checked(archive) if each.fault}
    expected = {gone: Fault.AWAY, changed: Fault.CHANGED, untold: Fault.CHANGED, "demo/else.parquet": Fault.UNKNOWN}
    assert faults == expected


async def test_a_store_of_before_knows_the_files_again_and_no_row_is_there_twice(archive: ArchiveBench) -> None:
    """Rows that came back with it leave it again, for the file that was written then."""
    ids = await archive.cold()
    late = await archive.finished("dot")
    day(archive.bench, 100)
    with pytest.raises(Killed):
        await archive.moved(Fate(name="after place"))
    await forgotten(archive)
    assert (await archive.hot(), await archive.cold()) == ([late.id], [])
    assert sorted((each.rows, each.refused) for each in await known(archive)) == [(1, None)] * 4
    assert await known(archive) == []
    assert (await archive.hot(), await archive.cold()) == ([late.id], ids)
    assert await archive.moved() == 1
    assert (await archive.hot(), await archive.cold()) == ([], [late.id, *ids])
    await archive.nothing_left_over()


async def test_a_file_that_is_no_more_what_was_written_is_refused(archive: ArchiveBench) -> None:
    path = (await archive.store.archive.all())[0].path
    await forgotten(archive)
    (archive.folder / path).write_bytes(b"PAR1")
    (archive.folder / f"{path}.copy.parquet{BESIDE}").write_bytes(b"{}")
    refused = {each.path for each in await known(archive) if each.refused}
    assert refused == {path, f"{path}.copy.parquet"}
    assert len(await archive.store.archive.all()) == 2


async def test_a_file_that_the_manifest_has_and_that_is_gone_makes_room(archive: ArchiveBench) -> None:
    """As after an erasure or a late one: the store of before knows the file that was replaced."""
    file = (await archive.store.archive.all())[0]
    other = file.path.replace(".parquet", "0.parquet")
    said = (archive.folder / f"{file.path}{BESIDE}").read_bytes().replace(file.path.encode(), other.encode())
    archive.bucket.put(other, (archive.folder / file.path).read_bytes())
    archive.bucket.put(f"{other}{BESIDE}", said)
    (refused,) = await known(archive)
    assert (refused.path, refused.refused) == (other, f"{file.path} has the same time")
    archive.bucket.delete(file.path)
    assert [each.refused for each in await known(archive)] == [None]
    assert len(await archive.cold()) == 3
    await archive.moved()
    await archive.nothing_left_over()


@pytest.mark.parametrize("deletes", [False, True])
async def test_who_was_erased_since_a_file_was_written_does_not_come_back_with_it(
    archive: ArchiveBench, deletes: bool, tmp_path: Path
) -> None:
    """The archive is lost and a copy of before is put back; the store says of the user no more than a hash.

    What the user was told after they were back is somebody new's.
    """
    back = await erased_and_put_back(archive, tmp_path / "copy", deletes=deletes)
    found = await known(archive, deletes=deletes)
    assert [(each.rows, each.passed_over, each.refused) for each in found] == [(0 if deletes else 1, 1, None)]
    await archive.moved()
    users = sorted(each.notification.user_id for each in await archive.cold_records())
    assert users == sorted(["ann", "bob", "cyd", *([] if deletes else ["erased-1"])])
    assert await archive.cold(user="bob") == [back.id]
    await archive.nothing_left_over()
    assert await known(archive, deletes=deletes) == []


async def test_a_restore_that_ends_at_any_step_brings_back_nobody_who_was_erased(
    archive: ArchiveBench, tmp_path: Path
) -> None:
    """And loses nobody else: what was interrupted is ended by the next one, or undone an hour later."""
    back = await erased_and_put_back(archive, tmp_path / "copy", deletes=False)

    async def restored(fate: Fate) -> None:
        async for _ in know_again(archive.files(fate), Forgotten(archive.store.erasures, deletes=False)):
            pass

    async def check() -> None:
        assert await archive.cold(user="bob") == [back.id]
        assert len(await archive.cold(user="ann")) == len(await archive.cold(user="cyd")) == 1
        archive.bench.clock.advance(HOUR_MS + 1)
        await archive.files().tidy()

    killed_at = await until_it_ends(restored, check)
    steps = {"begin", "put", "place"}
    assert killed_at >= {f"{when} {step}" for when in ("before", "after") for step in steps}
    await archive.moved()
    assert len(await archive.cold(user="erased-1")) == 1
    await archive.nothing_left_over()


async def erased_and_put_back(archive: ArchiveBench, copy: Path, *, deletes: bool) -> Notification:
    """Bob is erased, and the archive as it was before is put back; what he was told since, as somebody new."""
    bench, erasures = archive.bench, archive.store.erasures
    shutil.copytree(archive.folder, copy)
    order = Erasure((await archive.accepted()).id, APP, UserId("bob"), UserId("erased-1"), bench.now)
    day(bench, 1)
    back = await archive.finished("bob")
    day(bench, 100)
    await archive.moved()
    recent = [file for file in await archive.store.archive.all() if file.first_id == back.id]
    await erase(archive.files(), await erasures.ask(order), deletes=deletes)
    await erasures.finish(order, bench.now)
    for file in await archive.store.archive.all():
        if file not in recent:
            archive.bucket.delete(file.path)
            archive.bucket.delete(file.path + BESIDE)
    shutil.copytree(copy, archive.folder, dirs_exist_ok=True)
    return back
