"""Callbacks: what a provider posts to us of what became of a message."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from waypost.domain.ids import NotificationId
from waypost.domain.status import DeliveryStatus


class CallbackRequest(Struct, frozen=True):
    """A request of a provider, whose signature nobody has checked yet."""

    url: str
    """The address as the provider knows it: ``rest.public_url``, path and query."""
    headers: Mapping[str, str]
    """By lower-case name."""
    body: bytes


class ForgedCallback(Exception):
    """The request does not come from the provider."""


class TargetReport(Struct, frozen=True):
    """A report of what became of one target."""

    notification_id: NotificationId
    n: int
    status: DeliveryStatus
    """``delivered`` or ``opened``, or ``failed`` for what came back."""
    code: str | None = None
    why: str | None = None
    is_dead: bool = False
    """Whether nothing will reach the address again: it is forgotten as a dead token is."""


ReadCallback = Callable[[Any, CallbackRequest], Sequence[TargetReport]]
"""Reads a request with the section of its credential. Pure but for the secret's file; ForgedCallback where it is not
the provider's."""
