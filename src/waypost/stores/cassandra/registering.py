"""Registrations: how a token comes to one device, and never to two, through any crash and any race.

A token has one owner, a user, in ``token_owner``; each time it is taken it gets a new claim. To register it:

    1. read the user's partition; if the device has the token already, go to 5
    2. read the token's owner
    3. of another user: stop what has the token in that partition, and move its version in any case
    4. take the token by a claim of one's own, if the owner's claim is still the one that was read
    5. write the device (and stop what has the token beside it, or is too much), if the partition is as in 1

Whoever takes the token after 4 has done 3 to us before: 5 then finds another version and writes nothing. So a process
that ends between two steps leaves the token with nobody, or with whom it was, and the same registration again sets
that right.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from waypost.domain.device import CONTACTS, Device, Registration, nobody_with, registered
from waypost.domain.ids import AppId, UserId
from waypost.domain.time import Instant
from waypost.ports.devices import Registered
from waypost.stores.cassandra import partition
from waypost.stores.cassandra.link import CassandraLink
from waypost.stores.cassandra.partition import Partition, StoredDevice

Owner = tuple[UserId, bytes]
"""The user who has a token, and the claim by which they do."""


async def register(
    link: CassandraLink, said: Registration, now: Instant, cap: int, taken_from: set[UserId]
) -> Registered | None:
    """Make one attempt to register; None where somebody came between: then it is to be made again.

    To *taken_from* it adds whoever had the token, also where it comes to nothing in the end.
    """
    was = await partition.read(link, said.app, said.user_id)
    before = was.find(said.device_id)
    if before is not None and before.device.active and before.device.token == said.token:
        claim = before.claim
    else:
        claim = os.urandom(16)
        if not await _take(link, said, claim, taken_from, now):
            return None
    after = registered(said, None if before is None else before.device, now)
    pushed_out = _too_many(was, after, cap)
    if await _write(link, was, StoredDevice(after, claim), pushed_out, now):
        if before is not None and before.device.token != said.token:
            await forget(link, before)
    elif not await _was_overtaken(link, said):
        return None
    return Registered(after, before is None, tuple(device.device_id for device in pushed_out), tuple(taken_from))


async def keep(link: CassandraLink, said: Registration, now: Instant) -> Device | None:
    """Make one attempt to register what no active device has, for nobody; or find the device that has it.

    None where somebody came between. Between 4 and 5 of an app's own registration it takes the token as step 3 has it:
    that registration then finds the token with nobody, and takes it.
    """
    was, digest = await partition.read(link, said.app, said.user_id), said.token_hash
    owner = await owner_of(link, said.app, digest)
    if owner is not None:
        theirs = was if owner[0] == said.user_id else await partition.read(link, said.app, owner[0])
        having = [device for device in theirs.active() if device.token_hash == digest]
        if having:
            return having[0]
        if theirs is not was and not await partition.change(link, theirs, ()):
            return None
    claim = os.urandom(16)
    if not await _claim(link, said, claim, owner):
        return None
    before = was.find(said.device_id)
    after = registered(said, None if before is None else before.device, now)
    return after if await _write(link, was, StoredDevice(after, claim), (), now) else None


async def erase(link: CassandraLink, app: AppId, user_id: UserId, until: Instant) -> bool | None:
    """Make one attempt to delete what was registered until *until*; None where somebody came between.

    Tokens are given up first: what is left of an attempt that was cut short is found by the devices.
    """
    was = await partition.read(link, app, user_id)
    over = [held for held in was.devices if held.device.registered_at <= until]
    for held in over:
        await forget(link, held)
    _, statements = await link.made()
    if len(over) < len(was.devices):
        return await partition.change(link, was, [partition.remove(statements, each.device) for each in over]) or None
    return was.version is None or await partition.drop(link, was) or None


async def stop_token(link: CassandraLink, app: AppId, user_id: UserId, digest: bytes, now: Instant) -> bool:
    """Make one attempt to stop devices of a user that have the token, or are about to; False: try again."""
    was = await partition.read(link, app, user_id)
    _, statements = await link.made()
    having = [device for device in was.active() if device.token_hash == digest]
    return await partition.change(link, was, [partition.stop(statements, device, now) for device in having])


async def owner_of(link: CassandraLink, app: AppId, digest: bytes) -> Owner | None:
    """Find the user who may have a token."""
    session, statements = await link.made()
    rows = await session.execute(statements.owner, app, digest)
    return (rows[0][0], rows[0][1]) if rows else None


async def _take(link: CassandraLink, said: Registration, claim: bytes, taken_from: set[UserId], now: Instant) -> bool:
    """Take the token, steps 2 to 4; False where somebody else took it meanwhile."""
    owner = await owner_of(link, said.app, said.token_hash)
    if owner is not None and owner[0] != said.user_id:
        taken_from.add(owner[0])
        if not await stop_token(link, said.app, owner[0], said.token_hash, now):
            return False
    return await _claim(link, said, claim, owner)


async def _claim(link: CassandraLink, said: Registration, claim: bytes, owner: Owner | None) -> bool:
    """Take the token from *owner*, step 4; False where it is not theirs any more."""
    session, statements = await link.made()
    if owner is None:
        rows = await session.execute(statements.claim, said.app, said.token_hash, said.user_id, claim)
    else:
        rows = await session.execute(statements.take, said.user_id, claim, said.app, said.token_hash, owner[1])
    return bool(rows[0][0])


async def _write(
    link: CassandraLink, was: Partition, after: StoredDevice, pushed_out: Sequence[Device], now: Instant
) -> bool:
    """Write the devices, step 5."""
    _, statements = await link.made()
    parts = [partition.stop(statements, device, now) for device in (*_with_the_token(was, after.device), *pushed_out)]
    before = was.find(after.device.device_id)
    if before is not None and before.device.platform != after.device.platform:
        parts.append(partition.remove(statements, before.device))
    parts.append(partition.put(statements, after.device, after.claim))
    return await partition.change(link, was, parts)


async def _was_overtaken(link: CassandraLink, said: Registration) -> bool:
    """Tell whether another user took the token since: this registration came before theirs, and is done.

    Who keeps it for nobody (`keep`) is no other user: what an app registers comes before that.
    """
    owner = await owner_of(link, said.app, said.token_hash)
    return owner is not None and owner[0] not in (said.user_id, nobody_with(said.token))


async def forget(link: CassandraLink, before: StoredDevice) -> None:
    """Release the old token of a device that has another now, unless it was taken again since."""
    session, statements = await link.made()
    await session.execute(statements.forget, before.device.app, before.device.token_hash, before.claim)


def _beside(was: Partition, device: Device) -> list[Device]:
    return [other for other in was.active() if other.device_id != device.device_id]


def _with_the_token(was: Partition, device: Device) -> list[Device]:
    return [other for other in _beside(was, device) if other.token == device.token]


def _too_many(was: Partition, device: Device, cap: int) -> list[Device]:
    """List the active devices beside *device* that are above the cap, seen longest ago first."""
    if not cap or device.platform in CONTACTS:
        return []
    beside = [other for other in _beside(was, device) if other.token != device.token and other.platform not in CONTACTS]
    longest_ago = sorted(beside, key=lambda other: (other.last_seen_at, other.device_id))
    return longest_ago[: max(0, len(longest_ago) + 1 - cap)]
