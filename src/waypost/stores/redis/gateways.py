"""The register of gateways in Redis, and a mailbox for each of them.

    <prefix>gateway:<id>          stream of messages to a gateway: it is alive as long as this is there
    <prefix>live:<app>:<user>     set of the gateways that hold a user; gone unless one of them says so again

A mailbox ends a moment after its gateway stopped renewing it; nobody else makes one, so a message to a dead gateway is
refused, and whoever sent it removes the entries of that gateway. A gateway whose mailbox is gone, though it lives,
takes another id, under which it registers everybody anew: so it does not matter what others still remove of the former.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from waypost.ports.gateways import GatewayId, User
from waypost.stores.redis.commands import Redis, RedisAway, Script
from waypost.stores.redis.opening import redis_of
from waypost.stores.redis.settings import RedisSettings
from waypost.telemetry import Event, Silent, Telemetry

LEASE_S: Final = 15.0
"""Seconds after which a gateway that did not renew its mailbox is dead."""
ENTRIES_S: Final = 180.0
"""Seconds for which an entry stays unless it is said again."""
LETTERS_LIMIT: Final = 1_000
"""The most messages that a mailbox keeps; a gateway that is further behind notices the gap, and reads from feeds."""
AT_ONCE: Final = 500
AGAIN_S: Final = 0.5

_OPEN = Script("""
redis.call('XADD', KEYS[1], '*', 'b', '')
return redis.call('PEXPIRE', KEYS[1], ARGV[1])
""")
_HOLD = Script("""
local is_new = redis.call('SADD', KEYS[1], ARGV[1])
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return is_new
""")


class RedisGateways:
    """See Gateways."""

    def __init__(self, redis: Redis, settings: RedisSettings, telemetry: Telemetry, lease_s: float = LEASE_S) -> None:
        self._redis = redis
        self._reading = redis_of(settings, Silent())
        self._prefix = settings.prefix
        self._block_ms = int(settings.timeout_s * 500)
        self._telemetry = telemetry
        self._lease_s = lease_s
        self._id: GatewayId | None = None
        """Its id; None until it is registered, and where it must be anew."""
        self._last = b"0-0"
        self._held: set[User] = set()
        self._released: set[User] = set()
        self._has_released = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self, take: Callable[[bytes], None], missed: Callable[[], None]) -> None:
        """See Gateways."""
        self._take, self._missed = take, missed
        await self._reading.start()
        with contextlib.suppress(RedisAway):  # the renewal tries again
            await self._register()
        self._tasks = [asyncio.create_task(each) for each in (self._listen_on(), self._renew_on(), self._release_on())]

    async def stop(self) -> None:
        """See Gateways."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._reading.stop()
        if self._id is not None:
            with contextlib.suppress(RedisAway):  # it ends by itself
                await self._redis.execute([("DEL", self._mailbox(self._id))])
                await self.forget([(user, self._id) for user in self._held | self._released])

    async def hold(self, users: Sequence[User]) -> None:
        """See Gateways."""
        self._held.update(users)
        self._released.difference_update(users)
        if self._id is not None:
            try:
                await self._say(self._id, users)
            except RedisAway:
                self._id = None

    def release(self, user: User) -> None:
        """See Gateways."""
        self._held.discard(user)
        self._released.add(user)
        self._has_released.set()

    async def holders(self, users: Sequence[User]) -> Mapping[User, Sequence[GatewayId]]:
        """See Gateways."""
        found: dict[User, Sequence[GatewayId]] = {}
        for start in range(0, len(users), AT_ONCE):
            page = users[start : start + AT_ONCE]
            replies = await self._redis.execute([("SMEMBERS", self._entry(user)) for user in page])
            for user, members in zip(page, replies, strict=True):
                found[user] = [GatewayId(each.decode()) for each in members if each.decode() != self._id]
        return found

    async def tell(self, messages: Sequence[tuple[GatewayId, bytes]]) -> list[bool]:
        """See Gateways."""
        how = ("NOMKSTREAM", "MAXLEN", "~", LETTERS_LIMIT, "*", "b")
        replies = await self._redis.execute([("XADD", self._mailbox(to), *how, body) for to, body in messages])
        return [reply is not None for reply in replies]

    async def forget(self, gone: Sequence[tuple[User, GatewayId]]) -> None:
        """See Gateways."""
        for start in range(0, len(gone), AT_ONCE):
            page = gone[start : start + AT_ONCE]
            await self._redis.execute([("SREM", self._entry(user), gateway) for user, gateway in page])

    async def _register(self) -> None:
        """Take a new id and say who is held here; then read, since nobody knew it until now."""
        gateway, self._id = GatewayId(os.urandom(8).hex()), None
        await self._redis.execute([_OPEN([self._mailbox(gateway)], int(self._lease_s * 1_000))])
        self._id, self._last = gateway, b"0-0"
        try:
            await self._say(gateway, list(self._held))
        except RedisAway:
            self._id = None
            raise
        self._missed()

    async def _say(self, gateway: GatewayId, users: Sequence[User]) -> bool:
        """Say that *users* are held here; return whether any entry was not there."""
        is_any_new = False
        for start in range(0, len(users), AT_ONCE):
            page = users[start : start + AT_ONCE]
            said = [_HOLD([self._entry(user)], gateway, int(ENTRIES_S * 1_000)) for user in page]
            is_any_new |= any(await self._redis.execute(said))
        return is_any_new

    async def _renew_on(self) -> None:
        loop = asyncio.get_running_loop()
        say_again_at_s = loop.time() + ENTRIES_S / 3
        while True:
            await asyncio.sleep(self._lease_s / 3)
            with contextlib.suppress(RedisAway):  # whether it is still registered is seen later
                if self._id is None or not await self._is_renewed(self._id):
                    await self._register()
                elif loop.time() >= say_again_at_s:
                    say_again_at_s = loop.time() + ENTRIES_S / 3
                    if await self._say(self._id, list(self._held)):
                        self._missed()

    async def _is_renewed(self, gateway: GatewayId) -> bool:
        (is_there,) = await self._redis.execute([("PEXPIRE", self._mailbox(gateway), int(self._lease_s * 1_000))])
        return bool(is_there)

    async def _listen_on(self) -> None:
        while True:
            gateway = self._id
            if gateway is None:
                await asyncio.sleep(AGAIN_S)
                continue
            try:
                for place, body in await self._letters(gateway):
                    if gateway == self._id:
                        self._last = place
                    if body:
                        self._take(body)
            except RedisAway:
                await asyncio.sleep(AGAIN_S)
            except Exception as surprise:  # noqa: BLE001 - nothing is heard any more where this task ends
                self._telemetry.event(Event.STAGE_FAILED, stage="live.gateways", error=type(surprise).__name__)

    async def _letters(self, gateway: GatewayId) -> list[tuple[bytes, bytes]]:
        read = ("XREAD", "COUNT", AT_ONCE, "BLOCK", self._block_ms, "STREAMS", self._mailbox(gateway), self._last)
        (found,) = await self._reading.execute([read])
        return [(place, flat[1]) for place, flat in found[0][1]] if found else []

    async def _release_on(self) -> None:
        while True:
            await self._has_released.wait()
            self._has_released.clear()
            gone, self._released = self._released, set()
            if self._id is not None:
                with contextlib.suppress(RedisAway):  # the entries end by themselves
                    await self.forget([(user, self._id) for user in gone])

    def _mailbox(self, gateway: GatewayId) -> str:
        return f"{self._prefix}gateway:{gateway}"

    def _entry(self, user: User) -> str:
        return f"{self._prefix}live:{user[0]}:{user[1]}"  # an app's id has no colon
