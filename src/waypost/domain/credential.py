"""A credential: an app's identity at the provider of one channel."""

from __future__ import annotations

import re
from typing import Final, Self

from msgspec import Struct

from waypost.domain.channel import Channel
from waypost.domain.ids import AppId

NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,31}")
"""The form of the name of a channel's second credential."""


class CredentialId(Struct, frozen=True, order=True, cache_hash=True):
    """The name of one credential of an app: the unit of budget, limit and breaker."""

    app: AppId
    channel: Channel
    name: str = ""
    """The name that tells it from others of the channel; "" is the default one."""

    def __str__(self) -> str:
        """Format it as events, conditions and answers do: ``<app>/<channel>`` or ``<app>/<channel>/<name>``."""
        return f"{self.app}/{self.slot}"

    @property
    def slot(self) -> str:
        """The key of its section among those of its app: ``<channel>`` or ``<channel>/<name>``."""
        return slot_of(self.channel, self.name)

    @property
    def section(self) -> str:
        """The path of its section in the configuration, for errors that name a setting."""
        return f"apps.{self.app}.{self.slot}"

    @classmethod
    def of(cls, app: AppId, slot: str) -> Self:
        """Read what ``slot`` spells, the channel alone or with a name."""
        channel, _, name = slot.partition("/")
        return cls(app, Channel(channel), name)


def slot_of(channel: Channel, name: str) -> str:
    """Spell a credential of *channel* as its section is."""
    return f"{channel}/{name}" if name else channel


def channel_of(slot: str) -> Channel:
    """Return the channel whose plug-in reads the section at *slot*."""
    return Channel(slot.partition("/")[0])


def is_further(slot: str) -> bool:
    """Tell whether *slot* names a second credential of its channel, with a valid name."""
    _, slash, name = slot.partition("/")
    return bool(slash and NAME.fullmatch(name))
