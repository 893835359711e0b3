"""A recipient: a user as routing sees one, with the devices and with what features know of the user."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from waypost.domain.device import Device
from waypost.domain.notification import Notification


class Recipient(Struct, frozen=True):
    """The user of a notification."""

    devices: Sequence[Device] = ()
    facts: Mapping[str, Any] = {}
    """What each feature that decides about users has read of this one, by the feature's name."""


FactsReader = Callable[[Sequence[Notification]], Awaitable[Sequence[Mapping[str, Any]]]]
"""Reads the facts of the user of each notification, in their order; Unavailable where a store is away."""
