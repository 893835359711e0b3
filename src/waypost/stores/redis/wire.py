"""The hot path: one pipelining connection to a primary, made anew whenever it is lost."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Sequence
from typing import Final

import hiredis

from waypost.domain.errors import WaypostError
from waypost.stores.redis.address import Address, address_of, sentinels_of
from waypost.stores.redis.commands import Command, RedisAway, Reply, told
from waypost.stores.redis.connection import RedisConnection
from waypost.stores.redis.outage import Outage
from waypost.stores.redis.settings import RedisServer
from waypost.telemetry import Telemetry

FIRST_PAUSE_S: Final = 0.05
LONGEST_PAUSE_S: Final = 1.0
SETTLED_AFTER_S: Final = 1.0
"""Seconds that a connection must last not to count as a failed attempt: a server that drops all is not stormed."""


class SinglePrimary:
    """A single primary, named by its address or by Sentinels; see Redis.

    After a loss callers wait for the first new attempt; once that has failed they are told at once, while further
    attempts are made in the background.
    """

    def __init__(self, settings: RedisServer, telemetry: Telemetry) -> None:
        self._address = address_of(settings)
        self._sentinels = list(sentinels_of(settings))
        self._settings = settings
        self._outage = Outage(telemetry)
        self._loop = asyncio.get_running_loop()
        self._connection: RedisConnection | None = None
        self._tried = asyncio.Event()
        self._why = "not connected yet"
        self._keeping: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """See Redis."""
        self._keeping = asyncio.create_task(self._stay_connected(), name="redis")
        await self._tried.wait()

    async def stop(self) -> None:
        """See Redis."""
        if self._keeping is not None:
            self._keeping.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._keeping
        self._why = "stopped"
        if self._connection is not None:
            self._connection.on_lost = None
            self._connection.abort(self._why)
            self._connection = None
        self._tried.set()

    async def execute(self, commands: Sequence[Command]) -> list[Reply]:
        """See Redis."""
        if not commands:
            return []
        replies = await self._exchange(commands)
        wrong = [n for n, reply in enumerate(replies) if isinstance(reply, hiredis.ReplyError)]
        if wrong and all(_code(replies[n]) == "NOSCRIPT" for n in wrong):
            again = await self._exchange([told(commands[n]) for n in wrong])
            for n, reply in zip(wrong, again, strict=True):
                replies[n] = reply
            wrong = [n for n in wrong if isinstance(replies[n], hiredis.ReplyError)]
        if wrong:
            code = _code(replies[wrong[0]])
            if code == "READONLY" and self._connection is not None:
                self._connection.abort("it is no primary any more")
            raise RedisAway(f"Redis answers {code}")
        return replies

    async def _exchange(self, commands: Sequence[Command]) -> list[Reply]:
        if self._connection is None:
            await self._tried.wait()
            if self._connection is None:
                raise RedisAway(f"Redis is away: {self._why}")
        return await self._connection.send(commands)

    async def _stay_connected(self) -> None:
        pause_s = FIRST_PAUSE_S
        while True:
            began_s = self._loop.time()
            try:
                async with asyncio.timeout(self._settings.timeout_s):
                    connection = await self._connect()
            except (OSError, TimeoutError, WaypostError) as failed:
                self._why = _reason(failed)
                self._outage.began(self._why)
            else:
                await self._lasts(connection)
                if self._loop.time() - began_s >= SETTLED_AFTER_S:
                    pause_s = FIRST_PAUSE_S
                    continue
            self._tried.set()
            await asyncio.sleep(pause_s * (0.5 + random.random() / 2))  # noqa: S311 - spreads attempts, is no secret
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)

    async def _lasts(self, connection: RedisConnection) -> None:
        """Use *connection* until it is lost."""
        lost: asyncio.Future[str] = self._loop.create_future()

        def note(why: str) -> None:
            self._connection = None
            self._why = why
            self._tried.clear()
            lost.set_result(why)

        connection.on_lost = note
        if not connection.is_open:
            return
        self._connection = connection
        self._outage.ended()
        self._tried.set()
        await lost

    async def _connect(self) -> RedisConnection:
        """Open a connection and authenticate; a server that refuses that, or is no primary, is left again."""
        greeting = _greeting(self._address)
        host, port = self._address.host, self._address.port
        if self._sentinels:
            host, port = await self._ask_sentinels()
        connection = await self._dial(host, port, self._settings.timeout_s)
        try:
            role, *others = reversed(await connection.send([*greeting, ("ROLE",)] if self._sentinels else greeting))
            for reply in (role, *others):
                if isinstance(reply, hiredis.ReplyError):
                    raise RedisAway(f"Redis answers {_code(reply)}")
            if self._sentinels and role[0] != b"master":
                raise RedisAway("the Sentinels name a server that is no primary yet")
        except BaseException:
            connection.abort("it was not what it should be")
            raise
        return connection

    async def _ask_sentinels(self) -> tuple[str, int]:
        """Ask the Sentinels where the primary is; the first that says so is asked first from then on."""
        password = self._settings.sentinel_password
        question: list[Command] = [("AUTH", password)] if password else []
        question.append(("SENTINEL", "GET-MASTER-ADDR-BY-NAME", self._address.host))
        patience_s = self._settings.timeout_s / (len(self._sentinels) + 1)
        for n, (host, port) in enumerate(self._sentinels):
            with contextlib.suppress(OSError, TimeoutError, RedisAway):
                async with asyncio.timeout(patience_s):
                    connection = await self._dial(host, port, patience_s)
                    try:
                        named = (await connection.send(question))[-1]
                    finally:
                        connection.abort("it has answered")
                if isinstance(named, list):
                    self._sentinels.insert(0, self._sentinels.pop(n))
                    return named[0].decode(), int(named[1])
        raise RedisAway("no Sentinel names a primary")

    async def _dial(self, host: str, port: int, timeout_s: float) -> RedisConnection:
        tls = self._address.tls
        name = host if tls is not None else None
        _, connection = await self._loop.create_connection(
            lambda: RedisConnection(timeout_s), host, port, ssl=tls, server_hostname=name
        )
        return connection


def _greeting(address: Address) -> list[Command]:
    said: list[Command] = []
    if address.password is not None:
        said.append(("AUTH", address.username or "default", address.password))
    if address.db:
        said.append(("SELECT", address.db))
    return said or [("PING",)]


def _code(error: hiredis.ReplyError) -> str:
    return str(error).partition(" ")[0]


def _reason(failed: Exception) -> str:
    match failed:
        case WaypostError():
            return str(failed)
        case TimeoutError():
            return "no connection in time"
        case _:
            return getattr(failed, "strerror", None) or type(failed).__name__
