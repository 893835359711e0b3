"""The people at the dashboard: what each role may do."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from msgspec import Struct

from waypost.domain.ids import CallerId


class Right(StrEnum):
    """A kind of thing that people may do; each handler of a page needs one."""

    READ = "read"
    """Look at everything but messages."""
    MESSAGES = "messages"
    """Look at what a message says; each look is put on record."""
    OPERATE = "operate"
    """Retry, resolve, cancel, and change devices and users."""
    CAMPAIGN = "campaign"
    """Write templates and campaigns, and begin and stop them."""
    ADMINISTER = "administer"
    """Change keys and accounts."""


class Role(StrEnum):
    """A role of an account."""

    VIEWER = "viewer"
    OPERATOR = "operator"
    CAMPAIGNER = "campaigner"
    ADMIN = "admin"


RIGHTS: Final[Mapping[Role, frozenset[Right]]] = {
    Role.VIEWER: frozenset({Right.READ}),
    Role.OPERATOR: frozenset({Right.READ, Right.MESSAGES, Right.OPERATE, Right.CAMPAIGN}),
    Role.CAMPAIGNER: frozenset({Right.READ, Right.CAMPAIGN}),
    Role.ADMIN: frozenset(Right),
}


class Operator(Struct, frozen=True):
    """A person at the dashboard."""

    name: str
    role: Role
    can_log_out: bool = False

    @property
    def caller(self) -> CallerId:
        """The name in the record of orders."""
        return CallerId(f"dashboard:{self.name}")

    def may(self, right: Right) -> bool:
        """Tell whether this person has *right*."""
        return right in RIGHTS[self.role]


UNKNOWN: Final = "(unknown)"
"""Whom a try to log in was for that named no account of ours: what was typed there may be a password."""
LOCAL: Final = Operator("local", Role.OPERATOR)
"""Whoever opened a link on the machine, where nobody logs in."""
NAMES_TAKEN: Final = frozenset({LOCAL.name, UNKNOWN})
"""The names on record that no account may have."""
