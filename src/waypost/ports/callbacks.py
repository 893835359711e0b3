"""Callbacks: what a provider posts to us of what became of a message."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from waypost.domain.channel import Channel
from waypost.domain.credential import CredentialId
from waypost.domain.ids import AppId, NotificationId
from waypost.domain.status import DeliveryStatus

DEFAULT: Final = "default"
"""The name, in the path of callbacks, of a channel's credential that has none."""


def callback_path(credential: CredentialId) -> str:
    """Return the path that the provider of *credential* posts to."""
    return f"/callbacks/{credential.app}/{credential.channel}/{credential.name or DEFAULT}"


def credential_at(app: str, channel: str, name: str) -> CredentialId:
    """Return the credential that the parts of such a path name."""
    return CredentialId(AppId(app), Channel(channel), "" if name == DEFAULT else name)


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
