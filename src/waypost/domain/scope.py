"""What a caller may do."""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class Scope(StrEnum):
    """One right; a route takes one of them."""

    SEND = "send"
    """Submit, cancel and replay notifications, also in bulk."""
    SEND_ANY_USER = "send:any-user"
    """Act for any user of the app: the backend's word for who is logged in."""
    DEVICES = "devices"
    """Register, list and deactivate devices."""
    READ = "read"
    """Read notifications and what became of them."""
    ADMIN = "admin"
    """What an operator does: keys, dead letters, dedup windows."""


EVERY_SCOPE: Final = frozenset(Scope)
"""What a key may do that was made without a choice."""
