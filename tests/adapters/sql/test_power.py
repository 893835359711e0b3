"""A loss of power: what was answered is there afterwards, of all that was written nothing but what was synced.

The process runs with a library before libc's own fsync and fdatasync (synced.c), which keeps each file as it was then.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest
import pytest_asyncio

from tests.adapters.sql.conftest import Actor, OpenStore, StartActor
from waypost.domain.ids import SHARDS
from waypost.domain.notification import Lane
from waypost.domain.time import Instant
from waypost.stores.sql.store import Store

pytestmark = pytest.mark.asyncio

SOURCE = Path(__file__).with_name("synced.c")


@pytest.fixture(scope="session")
def synced_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library, compiled."""
    compiler = shutil.which("cc")
    if compiler is None:
        assert os.environ.get("CI") != "true", "there is no C compiler"
        pytest.skip("there is no C compiler")
    library = tmp_path_factory.mktemp("synced") / "synced.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", library, SOURCE, "-ldl"], check=True)
    return library


class Powered(NamedTuple):
    """A process at work, and the folder that a loss of power leaves of its files."""

    actor: Actor
    left: Path

    def syncs(self) -> int:
        """How often it synced a file."""
        log = self.left / "syncs"
        return len(log.read_text().splitlines()) if log.exists() else 0


@pytest_asyncio.fixture
async def powered(tmp_path: Path, synced_library: Path, open_at: OpenStore, start_actor: StartActor) -> Powered:
    """A process that owns an empty store, which was closed well the last time."""
    folder, left = tmp_path / "disk", tmp_path / "left"
    folder.mkdir()
    left.mkdir()
    await (await open_at(folder / "a.db")).close()
    shutil.copy(folder / "a.db", left)
    watched = {"WAYPOST_SYNCED_FROM": str(folder.resolve()), "WAYPOST_SYNCED_TO": str(left)}
    actor = await start_actor(folder / "a.db", LD_PRELOAD=str(synced_library), **watched)
    await actor.do("acquire", wanted=SHARDS)
    await actor.do("withdraw")  # the log has begun: its head takes a sync of its own
    return Powered(actor, left)


async def _after_the_cut(powered: Powered, open_at: OpenStore) -> Store:
    await powered.actor.kill()
    return await open_at(powered.left / "a.db")


async def _leasable(store: Store) -> set[str]:
    await store.work.promote_due(Instant(0), 100)
    lease = await store.work.lease(Lane.NORMAL, 1_000, Instant(0))
    return {item.notification.id.hex() for item in lease.items}


async def test_every_accept_that_was_answered_is_there(powered: Powered, open_at: OpenStore) -> None:
    before = powered.syncs()
    answered = await powered.actor.do("accept", user="ann", size=3, batches=5)
    assert powered.syncs() - before == 5, "one sync for each commit"
    assert await _leasable(await _after_the_cut(powered, open_at)) == {one for batch in answered for one in batch}


async def test_what_is_on_record_to_be_sent_once_is_not_sent_again(powered: Powered, open_at: OpenStore) -> None:
    """Nor is it where outcomes, which sync nothing, are written in the same commit."""
    before = powered.syncs()
    await powered.actor.do("intend")
    assert powered.syncs() - before == 2, "the accept and the intent"
    assert await _leasable(await _after_the_cut(powered, open_at)) == set()


async def test_what_was_answered_as_cancelled_stays_so(powered: Powered, open_at: OpenStore) -> None:
    await powered.actor.do("withdraw")
    assert await _leasable(await _after_the_cut(powered, open_at)) == set()
