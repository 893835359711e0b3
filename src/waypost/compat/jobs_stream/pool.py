"""The connections to PostgreSQL that the whole process shares: so many, opened once and again when they are lost."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import psycopg
from psycopg import AsyncConnection, pq

from waypost.domain.errors import ConfigurationError, ErrorCode, Unavailable
from waypost.telemetry import Event, Telemetry

SIZE: Final = 4
CONNECT_TIMEOUT_S: Final = 2
STATEMENT_TIMEOUT_MS: Final = 5_000
ANSWER_TIMEOUT_S: Final = 8.0
"""A server that does not answer for so long, although it promised to give up before, is away."""
VARIABLE: Final = "DATABASE_URL"

_PASSING_CLASSES = ("08", "40", "53", "55", "57", "58")
"""Connection exceptions, rollbacks, insufficient resources, locks, operator intervention, system errors."""
_READ_ONLY = "25006"  # the server became a standby
_MEANS_IT = "SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'"
"""An entry is acknowledged after its row is closed: that must outlive the server then, whatever its default."""
_FORBIDDEN = "42501"  # insufficient_privilege
_REFUSALS = ("authentication failed", "does not exist", "no pg_hba.conf entry", "permission denied")
"""What a server says to whoever may not come in: libpq hands on its text, and no SQLSTATE."""


class ConnectionPool:
    """Hands its connections out one at a time; whoever gets one may wait, but no longer than ANSWER_TIMEOUT_S."""

    def __init__(self, url: str, telemetry: Telemetry) -> None:
        self._url = understood(url)
        self._telemetry = telemetry
        self._free: asyncio.Queue[AsyncConnection[Any] | None] = asyncio.Queue()
        self._is_away = False
        for _ in range(SIZE):
            self._free.put_nowait(None)

    @contextlib.asynccontextmanager
    async def connection(self) -> AsyncIterator[AsyncConnection[Any]]:
        """Lend a connection without implicit transactions; Unavailable where the server is away or has no time."""
        connection = await self._free.get()
        try:
            try:
                async with asyncio.timeout(ANSWER_TIMEOUT_S):
                    if connection is None or connection.closed:
                        connection = await self._open()
                    yield connection
            except TimeoutError:
                if connection is not None:
                    await connection.close()
                raise self._away("no answer in time") from None
            except psycopg.Error as error:
                raise self._meant(error) from None
            self._is_back()
        finally:
            self._free.put_nowait(connection)

    async def close(self) -> None:
        """Close every connection, each once whoever has it is done."""
        for _ in range(SIZE):
            connection = await self._free.get()
            if connection is not None:
                await connection.close()

    async def _open(self) -> AsyncConnection[Any]:
        opened = await AsyncConnection.connect(
            self._url,
            autocommit=True,
            cursor_factory=psycopg.AsyncRawCursor,
            application_name="waypost notifications-service",
            connect_timeout=CONNECT_TIMEOUT_S,
            options=f"-c statement_timeout={STATEMENT_TIMEOUT_MS}",
            keepalives_idle=5,
            keepalives_interval=2,
            keepalives_count=3,
        )
        await opened.execute(_MEANS_IT)
        return opened

    def _meant(self, error: psycopg.Error) -> Exception:
        """Unavailable where the same may succeed later; its text tells no parameter and no row."""
        state = error.sqlstate
        refusal = next((each for each in _REFUSALS if state is None and each in str(error)), None)
        if refusal or state == _FORBIDDEN:
            return ConfigurationError(VARIABLE, f"the server refuses it: {refusal or 'permission denied'}")
        if state is None:
            return self._away(type(error).__name__) if isinstance(error, psycopg.OperationalError) else error
        return self._away(state) if state[:2] in _PASSING_CLASSES or state == _READ_ONLY else error

    def _away(self, why: str) -> Unavailable:
        if not self._is_away:
            self._is_away = True
            self._telemetry.event(Event.STORE_AWAY, why=why)
        return Unavailable(f"PostgreSQL is away: {why}", ErrorCode.STORAGE_AWAY)

    def _is_back(self) -> None:
        if self._is_away:
            self._is_away = False
            self._telemetry.event(Event.STORE_RECOVERED)


def understood(url: str) -> str:
    """Return *url* without what other clients put into it (``?schema=public``); ConfigurationError where it is none."""
    parts = urlsplit(url)
    if parts.scheme not in ("postgres", "postgresql"):
        raise ConfigurationError(VARIABLE, "expected postgresql://…")
    known = {each.keyword.decode() for each in pq.Conninfo.get_defaults()}
    asked = {name: value for name, value in parse_qsl(parts.query) if name in known}
    if asked.get("sslmode") == "no-verify":  # node-postgres' word for TLS without a look at the certificate
        asked["sslmode"] = "require"
    return urlunsplit(parts._replace(query=urlencode(asked)))
