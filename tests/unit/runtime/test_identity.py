"""Keys that are known while the store is away: for an hour, also by a process that is started meanwhile."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from tests.contract.clock import StoppedClock
from tests.memory.keys import MemoryKeys
from tests.memory.store import MemoryStore
from waypost.domain.errors import ErrorCode, Unavailable
from waypost.domain.ids import AppId, CallerId
from waypost.domain.time import HOUR_MS, Instant
from waypost.ports.keys import ApiKey
from waypost.runtime.identity import RememberedKeys
from waypost.telemetry import Silent

pytestmark = pytest.mark.asyncio

ANN, BOB = (
    ApiKey(f"wp_{name}", name.encode(), AppId("demo"), CallerId(name), Instant(n)) for n, name in enumerate("ab")
)


class Leaving(MemoryKeys):
    """Keys whose store may be away."""

    away = False

    async def find(self, prefix: str) -> ApiKey | None:
        """See Keys."""
        self._ask()
        return await super().find(prefix)

    async def all(self, app: AppId | None = None) -> list[ApiKey]:
        """See Keys."""
        self._ask()
        return await super().all(app)

    def _ask(self) -> None:
        if self.away:
            raise Unavailable("away", ErrorCode.STORAGE_AWAY)


@pytest.fixture
def clock() -> StoppedClock:
    """Stands still."""
    return StoppedClock()


@pytest.fixture
def keys() -> Leaving:
    """A store without a key."""
    return Leaving(MemoryStore())


async def test_a_key_is_known_for_an_hour_after_the_last_look(
    tmp_path: Path, clock: StoppedClock, keys: Leaving
) -> None:
    remembered = RememberedKeys(keys, tmp_path / "identity.json", clock)
    await keys.add(ANN)
    assert remembered.age_s is None
    await remembered.refresh()
    keys.away = True
    assert await remembered.find(ANN.prefix) == ANN
    clock.advance(HOUR_MS - 1)
    assert await remembered.find(ANN.prefix) == ANN
    clock.advance(1)
    assert remembered.age_s is None
    with pytest.raises(Unavailable):
        await remembered.find(ANN.prefix)


async def test_of_a_key_that_it_has_not_seen_it_does_not_say_that_there_is_none(
    tmp_path: Path, clock: StoppedClock, keys: Leaving
) -> None:
    """It may be younger than the snapshot."""
    remembered = RememberedKeys(keys, tmp_path / "identity.json", clock)
    await remembered.refresh()
    await keys.add(BOB)
    assert await remembered.find(BOB.prefix) == BOB
    keys.away = True
    with pytest.raises(Unavailable):
        await remembered.find(BOB.prefix)


async def test_what_is_revoked_stays_so(tmp_path: Path, clock: StoppedClock, keys: Leaving) -> None:
    remembered = RememberedKeys(keys, tmp_path / "identity.json", clock)
    await remembered.add(ANN)
    await remembered.revoke(ANN.prefix, clock.now())
    await remembered.refresh()
    keys.away = True
    found = await remembered.find(ANN.prefix)
    assert found is not None and found.revoked_at == clock.now()


async def test_a_process_that_starts_meanwhile_has_it_from_a_file_for_its_own_user(
    tmp_path: Path, clock: StoppedClock, keys: Leaving
) -> None:
    """Its age is that of the look, not of the process."""
    path = tmp_path / "identity.json"
    await keys.add(ANN)
    await RememberedKeys(keys, path, clock).refresh()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert os.listdir(tmp_path) == [path.name]
    keys.away = True
    clock.advance(HOUR_MS - 1_000)
    started = RememberedKeys(keys, path, clock)
    started.start(Silent())
    try:
        assert started.age_s == 3_599
        assert await started.find(ANN.prefix) == ANN
        clock.advance(1_000)
        assert started.age_s is None
    finally:
        await started.stop()


async def test_a_file_that_is_damaged_is_none(tmp_path: Path, clock: StoppedClock, keys: Leaving) -> None:
    path = tmp_path / "identity.json"
    path.write_text('{"taken_at": 1, "keys": [')
    keys.away = True
    started = RememberedKeys(keys, path, clock)
    started.start(Silent())
    assert started.age_s is None
    await started.stop()
