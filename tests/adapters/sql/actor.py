"""A real process on a store: it does what its standard input says, one JSON line each, and answers with one."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import msgspec

from tests.adapters.sql.conftest import WallClock, settings_of
from tests.amending import withdraw
from tests.contract.bench import intent, notification, sent, targets
from waypost.domain.amendment import Withdrawn
from waypost.domain.ids import next_ids
from waypost.domain.notification import Guarantee, Lane
from waypost.domain.time import Instant
from waypost.ports.work import Accepted, NewNotification, Settled
from waypost.stores.sql.location import run_dir_of_store
from waypost.stores.sql.store import Store, open_store
from waypost.stores.sql.write_lock import WriteLock
from waypost.telemetry.sink import Silent


async def main(database: Path) -> None:
    """Serve until standard input ends."""
    store = await open_store(settings_of(database), clock=WallClock(), peers=None, telemetry=Silent())
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        print(json.dumps(await _do(store, **json.loads(line))), flush=True)
    await store.close()


async def _do(store: Store, do: str, **how: Any) -> Any:
    match do:
        case "acquire":
            await store.shards.acquire(how["wanted"])
            return sorted(store.shards.owned)
        case "role":
            return await store.shards.take_role(how["name"])
        case "lease":
            lease = await store.work.lease(Lane.NORMAL, how["n"], Instant(0))
            return [item.notification.id.hex() for item in lease.items]
        case "accept":
            return [await _accept(store, how["user"], how["size"]) for _ in range(how["batches"])]
        case "intend":
            return await _intend(store)
        case "withdraw":
            return await _withdraw(store)
        case _:
            raise ValueError(do)


async def _accept(store: Store, user: str, size: int) -> list[str]:
    """Accept a batch with ids of this process's own time and randomness."""
    now = WallClock().now()
    ids, _ = next_ids(now, size, os.urandom(10), 0)
    batch = [
        NewNotification(msgspec.structs.replace(notification(now, user=f"{user}{n}"), id=one))
        for n, one in enumerate(ids)
    ]
    answers = await store.work.accept(batch)
    assert answers == [Accepted(one) for one in ids]
    return [one.hex() for one in ids]


async def _intend(store: Store) -> list[str]:
    """Lease two, and put one on record before it is sent, in the commit in which the other one is settled."""
    now = WallClock().now()
    once = notification(now, user="ann", guarantee=Guarantee.AT_MOST_ONCE)
    beside = notification(now, user="bob")
    await store.work.accept([NewNotification(once), NewNotification(beside)])
    lease = await store.work.lease(Lane.NORMAL, 10, Instant(0))
    nobody_writes = WriteLock(run_dir_of_store(store.database.settings))
    with nobody_writes.hold(1.0):
        parts = (Settled(beside, (sent(0, now),), targets(1)), Settled(once, (intent(0, now),), targets(1)))
        writing = [asyncio.create_task(store.work.settle(lease, [part])) for part in parts]
        await asyncio.sleep(0)  # both are queued
    nobody_writes.close()
    assert await asyncio.gather(*writing) == [[], []]
    return [once.id.hex(), beside.id.hex()]


async def _withdraw(store: Store) -> list[str]:
    """Accept one and take it back."""
    made = notification(WallClock().now())
    await store.work.accept([NewNotification(made)])
    assert await withdraw(store.work, made.app, [made.id], "cancelled", made.created_at) == [Withdrawn(0)]
    return [made.id.hex()]


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
