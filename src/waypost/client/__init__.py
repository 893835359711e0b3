"""The Python client for callers: ``Client`` waits for each answer, ``AsyncClient`` is for asyncio."""

from typing import TYPE_CHECKING, Any

from waypost.client.blocking import Client
from waypost.client.errors import ApiError, ClientError, ConnectionLost

if TYPE_CHECKING:
    from waypost.client.asynchronous import AsyncClient

__all__ = ["ApiError", "AsyncClient", "Client", "ClientError", "ConnectionLost"]


if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """Import ``AsyncClient`` on its first use: it brings aiohttp, which ``Client`` does without."""
        if name == "AsyncClient":
            from waypost.client.asynchronous import AsyncClient

            return AsyncClient
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
