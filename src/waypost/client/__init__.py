"""The Python client for callers: ``Client`` waits for each answer, ``AsyncClient`` is for asyncio.

It is Waypost's ``waypost.client``, and alone the package ``waypost-client`` with the name ``waypost_client``: what it
imports of itself, it imports relatively, and beside that the standard library alone.
"""

from typing import TYPE_CHECKING, Any

from .blocking import Client
from .errors import ApiError, ClientError, ConnectionLost
from .types import NotificationView, ReceiptView, Submission, Submitted, SubmittedDevice

if TYPE_CHECKING:
    from .asynchronous import AsyncClient

__all__ = [
    "ApiError",
    "AsyncClient",
    "Client",
    "ClientError",
    "ConnectionLost",
    "NotificationView",
    "ReceiptView",
    "Submission",
    "Submitted",
    "SubmittedDevice",
]


if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """Import ``AsyncClient`` on its first use: it brings asyncio, which ``Client`` does without."""
        if name == "AsyncClient":
            from .asynchronous import AsyncClient

            return AsyncClient
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
