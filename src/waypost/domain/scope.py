"""The permissions of a caller."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Final


class Scope(StrEnum):
    """A permission; each route needs one."""

    SEND = "send"
    """Send to oneself: worth something to an end user's token alone."""
    SEND_ANY_USER = "send:any-user"
    """Send to any user of the app, and act for one: the backend's word for who is logged in."""
    DEVICES = "devices"
    """Register and deactivate devices, opt users out of bulk sends, and list both."""
    READ = "read"
    """Read notifications, jobs, and what became of them."""
    ADMIN = "admin"
    """Do what an operator does: keys, dead letters replayed by the page, users erased, record and outbox read."""


EVERY_SCOPE: Final = frozenset(Scope)
"""The scopes of a key that was made without a choice."""


def with_implied(scopes: Iterable[Scope]) -> frozenset[Scope]:
    """Add the scopes that *scopes* include: who may send to any user may send to one."""
    given = frozenset(scopes)
    return given | {Scope.SEND} if Scope.SEND_ANY_USER in given else given
