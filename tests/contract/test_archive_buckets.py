"""Where the archive's files lie: a folder, and a bucket of a real S3-compatible server, to the same promises."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from scripts.services.s3 import KEY_ID, S3, SECRET
from tests.contract.archiving import ArchiveBench, day
from tests.contract.bench import Bench
from tests.contract.conftest import empty_store
from tests.contract.sql import SqlUnderTest
from waypost.domain.errors import ErrorCode
from waypost.domain.ids import UserId
from waypost.features.archive.erasing import erase
from waypost.ports.archive import Fault
from waypost.ports.erasure import Erasure
from waypost.stores.archive.bucket import ArchiveAway, Bucket, Folder, Unsound, bucket_at
from waypost.stores.archive.settings import S3Settings

pytestmark = pytest.mark.asyncio


def bucket_on(server: S3, folder: Path, secret: str = SECRET, name: str | None = None) -> Bucket:
    """A bucket of its own, below a prefix."""
    if name is None:
        server.make_bucket(name := f"waypost-{uuid.uuid4().hex[:8]}")
    file = folder / "secret"
    file.write_text(f"{secret}\n")
    settings = S3Settings(endpoint=server.url, access_key_id=KEY_ID, secret_access_key_file=str(file))
    return bucket_at(f"s3://{name}/below/here", settings)


@pytest.fixture(params=["folder", pytest.param("s3", marks=pytest.mark.engines)])
def bucket(request: pytest.FixtureRequest, tmp_path: Path) -> Bucket:
    """An empty one of each kind."""
    if request.param == "folder":
        return bucket_at(str(tmp_path / "archive"), S3Settings())
    return bucket_on(request.getfixturevalue("s3"), tmp_path)


@pytest_asyncio.fixture
async def held(request: pytest.FixtureRequest, tmp_path: Path, empty_database: Path) -> AsyncIterator[SqlUnderTest]:
    """A store, whose engine makes no difference here."""
    async with empty_store("sqlite", tmp_path, request, empty_database) as opened:
        assert isinstance(opened, SqlUnderTest)
        yield opened


async def of(store: SqlUnderTest, bucket: Bucket, folder: Path) -> ArchiveBench:
    return ArchiveBench(Bench(store, (await store.open_workers(1))[0]), folder, bucket)


async def test_a_file_is_there_whole_or_not_at_all(bucket: Bucket) -> None:
    data = bytes(range(256)) * 2_000
    bucket.put("demo/2026-05-01/one.parquet", data)
    bucket.put("demo/2026-05-01/one.parquet.json", b"{}")
    assert bucket.get("demo/2026-05-01/one.parquet") == data
    with bucket.open("demo/2026-05-01/one.parquet") as file:
        file.seek(1_000)
        assert bytes(file.read(16)) == data[1_000:1_016]
        file.seek(-4, 2)
        assert bytes(file.read(4)) == data[-4:]
    assert bucket.paths() == ["demo/2026-05-01/one.parquet", "demo/2026-05-01/one.parquet.json"]
    for _ in range(2):
        bucket.delete("demo/2026-05-01/one.parquet")
    assert bucket.paths() == ["demo/2026-05-01/one.parquet.json"]
    for read in (bucket.get, bucket.open):
        with pytest.raises(Unsound) as away:
            read("demo/2026-05-01/one.parquet")
        assert (away.value.code, away.value.fault) == (ErrorCode.ARCHIVE_AWAY, Fault.AWAY)


async def test_what_left_the_store_is_found_listed_and_forgotten(
    held: SqlUnderTest, bucket: Bucket, tmp_path: Path
) -> None:
    archive = await of(held, bucket, tmp_path)
    hers, his = [await archive.finished("ann") for _ in range(3)], await archive.finished("bob")
    day(archive.bench, 92)
    assert await archive.moved(rows=2) == 4
    await archive.all_there_once([*hers, his])
    assert await archive.cold(user="ann", limit=2) == sorted((each.id for each in hers), reverse=True)
    order = Erasure(his.id, his.app, UserId("ann"), UserId("erased-1"), archive.bench.now)
    await erase(archive.files(), order, deletes=True)
    assert await archive.cold() == [his.id]
    await archive.nothing_left_over()


@pytest.mark.engines
async def test_nothing_leaves_the_store_while_the_bucket_is_away(held: SqlUnderTest, s3: S3, tmp_path: Path) -> None:
    """A wrong secret, a bucket that is not there, a server that is gone: each is said, without the server's words."""
    bucket = bucket_on(s3, tmp_path)
    archive = await of(held, bucket, tmp_path)
    made = await archive.finished("ann")
    day(archive.bench, 92)
    for away in (bucket_on(s3, tmp_path, secret="wrong"), bucket_on(s3, tmp_path, name="nowhere")):
        archive.bucket = away
        with pytest.raises(ArchiveAway) as said:
            await archive.moved()
        assert not isinstance(said.value, Unsound), "no file of it is to blame"
        assert SECRET not in str(said.value) and "http" not in str(said.value)
        assert await archive.hot() == [made.id]
    archive.bucket = bucket_on(s3, tmp_path)
    s3.kill()
    with pytest.raises(ArchiveAway):
        await archive.moved()
    assert await archive.hot() == [made.id]
    s3.start()
    assert await archive.moved() == 1
    assert await archive.cold() == [made.id]


async def test_a_folder_that_is_cut_off_in_the_middle_has_no_file(tmp_path: Path) -> None:
    """What was written of it has another name, is no file of the archive, and goes with it."""
    folder = Folder(tmp_path)
    part = tmp_path / "demo" / ".one.parquet.part"
    part.parent.mkdir()
    part.write_bytes(b"PA")
    assert folder.paths() == []
    folder.delete("demo/one.parquet")
    assert not part.exists()
