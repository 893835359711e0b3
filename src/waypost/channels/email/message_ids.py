"""The ``Message-ID`` of a delivery: made of its notification's id and its target, so that a retry has the same."""

from __future__ import annotations

import re
from typing import NamedTuple
from uuid import UUID

from waypost.domain.ids import NotificationId, format_id

REFERENCE_HEADER = "X-Waypost-Id"
"""Has the same without a domain, for providers that write a ``Message-ID`` of their own."""
_REFERENCE = re.compile(r"<?([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.([0-9]{1,6})(?:@[^@\s<>]*>?)?")


class Reference(NamedTuple):
    """The delivery that a message was."""

    id: NotificationId
    target: int


def reference_of(notification_id: NotificationId, target: int) -> str:
    """Name a delivery in a header."""
    return f"{format_id(notification_id)}.{target}"


def message_id_of(reference: str, domain: str) -> str:
    """Build the ``Message-ID`` of the delivery that *reference* names."""
    return f"<{reference}@{domain}>"


def read_reference(text: str) -> Reference | None:
    """Read which delivery a reference or ``Message-ID`` names; None where it is not one of ours."""
    found = _REFERENCE.fullmatch(text.strip())
    return None if found is None else Reference(NotificationId(UUID(found[1]).bytes), int(found[2]))
