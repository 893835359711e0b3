"""The archive's files and the manifest held against each other, on both engines."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
import pytest_asyncio

from tests.contract.archiving import ArchiveBench, Fate, Killed, day
from tests.contract.bench import Bench
from tests.contract.sql import SqlUnderTest
from waypost.features.archive.files import BESIDE
from waypost.features.archive.knowing import Checked, Fault, Known, know_again, verify
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


async def known(archive: ArchiveBench) -> list[Known]:
    return [each async for each in know_again(archive.files())]


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
