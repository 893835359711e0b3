"""The Python client for callers: ``Client`` waits for each answer, ``AsyncClient`` is for asyncio."""

from waypost.client.asynchronous import AsyncClient
from waypost.client.blocking import Client
from waypost.client.errors import ApiError, ClientError, ConnectionLost

__all__ = ["ApiError", "AsyncClient", "Client", "ClientError", "ConnectionLost"]
