"""The senders that are installed under the entry points ``waypost.senders``, ours like those of others."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Final

import msgspec

from waypost import config
from waypost.bootstrap import features
from waypost.bootstrap.promises import check_required
from waypost.bootstrap.records import check_records
from waypost.config import AppSettings, Config
from waypost.domain.channel import Channel
from waypost.domain.device import UNKNOWN, Platform
from waypost.domain.errors import ConfigurationError
from waypost.ports.plugin import ENTRY_POINTS, SenderPlugin

_NAME = re.compile(r"[a-z][a-z0-9_]{0,31}")
_TAKEN: Final = {each.name for each in msgspec.structs.fields(AppSettings)}
"""Other keys of an app's settings."""


@cache
def installed() -> tuple[SenderPlugin, ...]:
    """List every installed sender, by channel; ConfigurationError names the plug-in that cannot be used."""
    plugins = registered(entry_points(group=ENTRY_POINTS))
    if not plugins:
        raise ConfigurationError(ENTRY_POINTS, "no sender is installed: waypost's own metadata is missing, install it")
    return plugins


def families() -> dict[Channel, str]:
    """Return the family of each channel."""
    return {plugin.channel: plugin.family for plugin in installed()}


def registered(entries: Iterable[EntryPoint]) -> tuple[SenderPlugin, ...]:
    """Load what *entries* point to, and check that no channel and no platform has two plug-ins."""
    found: dict[str, SenderPlugin] = {}
    names: dict[str, str] = {}
    for entry in sorted(entries, key=lambda entry: (entry.name, entry.value)):
        plugin = _loaded(entry)
        for name in (f"channel {plugin.channel}", *(f"platform {platform}" for platform in plugin.platforms)):
            if name in names:
                raise _unusable(entry, f"the {name} is {names[name]}'s already")
            names[name] = entry.value
        found[entry.name] = plugin
    return tuple(found.values())


def why_not_free(channel: str, platform: str) -> str | None:
    """Say why one more plug-in could not have this channel and this platform; None where it could."""
    if (fault := _name_fault(channel, [platform])) is not None:
        return fault
    for plugin in installed():
        if plugin.channel == channel or platform in plugin.platforms:
            taken = f"channel {channel}" if plugin.channel == channel else f"platform {platform}"
            return f"the {taken} is that of {plugin.title} already: choose another one"
    return None


def channels_of(plugins: Iterable[SenderPlugin]) -> dict[Platform, Channel]:
    """Return the channel of each platform."""
    return {platform: plugin.channel for plugin in plugins for platform in plugin.platforms}


def load(path: Path | None, environ: Mapping[str, str]) -> Config:
    """Load the configuration, with a section for each sender that is installed; see ``waypost.config.load``."""
    loaded = config.load(path, environ, installed(), features.sections())
    check_required(loaded)
    check_records(loaded)
    return loaded


def _loaded(entry: EntryPoint) -> SenderPlugin:
    try:
        plugin = entry.load()
    except Exception as broken:
        raise _unusable(entry, f"cannot be loaded: {type(broken).__name__}: {broken}") from broken
    if not isinstance(plugin, SenderPlugin):
        raise _unusable(entry, f"is no SenderPlugin but of the type {type(plugin).__name__}")
    if plugin.channel != entry.name:
        raise _unusable(entry, f"its channel is {plugin.channel}: the entry point must have the same name")
    if (fault := _name_fault(plugin.channel, plugin.platforms)) is not None:
        raise _unusable(entry, fault)
    return plugin


def _name_fault(channel: str, platforms: Iterable[str]) -> str | None:
    for name in (channel, *platforms):
        if not _NAME.fullmatch(name) or name == UNKNOWN:
            return f"{name!r} is no name for a channel or a platform"
    return f"{channel!r} is another key of an app's settings" if channel in _TAKEN else None


def _unusable(entry: EntryPoint, why: str) -> ConfigurationError:
    return ConfigurationError(f"plug-in {entry.name} ({entry.value})", why)
