"""A recipient: a user as routing sees one, with the devices and with what features know of the user."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from waypost.domain.device import Device
from waypost.domain.ids import AppId, UserId


class Recipient(Struct, frozen=True):
    """The user of a notification."""

    devices: Sequence[Device] = ()
    facts: Mapping[str, Any] = {}
    """What each feature that decides about users has read of this one, by the feature's name."""


FactsReader = Callable[[Sequence[tuple[AppId, UserId]]], Awaitable[Sequence[Mapping[str, Any]]]]
"""Reads the facts of users, in the order asked; Unavailable where a store is away."""
