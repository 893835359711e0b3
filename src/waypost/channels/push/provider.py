"""A provider that couriers post to: one address, over kept HTTP/1.1 connections, in a time that a setting says."""

from __future__ import annotations

import asyncio

from waypost.channels.push.endpoints import take_apart
from waypost.channels.push.http1 import Fields, Http1
from waypost.channels.push.origin import trust
from waypost.channels.push.patience import Until
from waypost.domain.errors import ConfigurationError
from waypost.domain.time import SECOND_MS
from waypost.http2 import Result, addresses


class Provider:
    """A provider at one address; more requests than *connections* at once wait for each other."""

    def __init__(self, section: str, url: str, *, ca_file: str | None, connections: int, timeout_s: float) -> None:
        """Create the client, in a running loop. ConfigurationError names ``<section>.endpoint`` or ``.ca_file``."""
        endpoint = take_apart(url)
        if endpoint is None or endpoint.scheme != "https":
            raise ConfigurationError(f"{section}.endpoint", "must be https://host or https://host:port")
        self._http = Http1(endpoint, trust(section, ca_file, "http/1.1"), addresses, connections)
        self._timeout_s = timeout_s

    def patience(self) -> Until:
        """Return how long a delivery that begins now may take: half of the time until it is on the wire."""
        now_s = asyncio.get_running_loop().time()
        return Until(now_s + self._timeout_s / 2, now_s + self._timeout_s)

    async def post(self, path: str, fields: Fields, body: bytes, until: Until) -> Result:
        """Post once, following no redirect: an ``Answer``, ``Unsent``, or ``Unknown`` where it may have been taken."""
        return await self._http.post(path, fields, body, until)

    async def close(self) -> None:
        """Close the connections."""
        await self._http.close()


def request_timeout_ms(timeout_s: float) -> int:
    """Return the time for the capabilities: what was written is known a little before a sender is cut off."""
    return int(timeout_s * SECOND_MS) + SECOND_MS // 2
