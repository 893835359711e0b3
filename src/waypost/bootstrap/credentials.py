"""What the keyring of a process holds: the sections of its senders, and the certificates of its doors."""

from __future__ import annotations

import asyncio
import datetime as dt
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec

from waypost.bootstrap.registry import installed
from waypost.bootstrap.senders import sender_of
from waypost.config import AppSettings, Config
from waypost.domain.errors import ConfigurationError
from waypost.domain.ids import AppId, CredentialId
from waypost.domain.time import Instant, from_datetime
from waypost.ports.plugin import Means, SenderPlugin
from waypost.ports.sender import Sender
from waypost.runtime.keyring import Held
from waypost.runtime.renewal import RenewableSender
from waypost.runtime.tls import ServerTls, first_end

_TRUST: Final = "ca_file"
"""Whom a sender trusts: many authorities, whose ends are not the app's affair."""


class Sections:
    """The apps as the file says now; fulfils ``Held``, so that a changed file is read again."""

    name: Final = "configuration"

    def __init__(self, config: Config, path: Path | None, read: Callable[[], Config]) -> None:
        self._apps: Mapping[AppId, AppSettings] = config.apps
        self._files = () if path is None else (str(path),)
        self._read = read

    def of(self, app: AppId, plugin: SenderPlugin) -> Any | None:
        """The section of a sender; None where there is none any more."""
        return self._apps[app].senders.get(plugin.channel) if app in self._apps else None

    def end_of(self, app: AppId, plugin: SenderPlugin) -> dt.date | None:
        """What is said of its end."""
        return self._apps[app].expires_on.get(plugin.channel) if app in self._apps else None

    def made_of(self) -> tuple[object, Sequence[str]]:
        """See Held."""
        return None, self._files

    async def reload(self) -> None:
        """See Held."""
        self._apps = (await asyncio.to_thread(self._read)).apps

    def ends_at(self) -> Instant | None:
        """See Held."""
        return None


class SenderCredential:
    """The credential of one sender (fulfils ``Held``)."""

    def __init__(
        self, app: AppId, plugin: SenderPlugin, sections: Sections, make: Callable[[AppId, SenderPlugin, Any], Sender]
    ) -> None:
        self.name: Final = CredentialId(f"{app}/{plugin.channel}")
        self._app = app
        self._plugin = plugin
        self._sections = sections
        self._make = make
        self.sender: Final = RenewableSender(make(app, plugin, self._section))

    @property
    def _section(self) -> Any | None:
        return self._sections.of(self._app, self._plugin)

    def made_of(self) -> tuple[object, Sequence[str]]:
        """See Held."""
        return self._section, [file for _, file in files_of(self._section)]

    async def reload(self) -> None:
        """See Held."""
        section = self._section
        if section is None:
            raise ConfigurationError(f"apps.{self._app}.{self._plugin.channel}", "is gone; it is used until a restart")
        await self.sender.renew(lambda: self._make(self._app, self._plugin, section))

    def ends_at(self) -> Instant | None:
        """The first of the ends of its certificates and the day that the configuration names."""
        return end_of_section(self._section, self._sections.end_of(self._app, self._plugin))


def credentials_of(config: Config, means: Means, sections: Sections) -> dict[CredentialId, SenderCredential]:
    """One of each sender, not yet started."""
    make = partial(sender_of, means)
    found = [
        SenderCredential(app, plugin, sections, make)
        for app, chosen in config.apps.items()
        for plugin in installed()
        if plugin.channel in chosen.senders
    ]
    return {each.name: each for each in found}


def held_by(
    sections: Sections, credentials: Mapping[CredentialId, SenderCredential], doors: Mapping[str, ServerTls]
) -> list[Held]:
    """All of a process, the configuration first: it says what the others are made of."""
    senders: list[Held] = [sections, *credentials.values()] if credentials else []
    return [*senders, *doors.values()]


def ends_of(config: Config, doors: Mapping[str, ServerTls]) -> dict[str, Instant]:
    """When each credential and certificate ends of which that is known."""
    ends = {
        f"{app}/{channel}": end_of_section(section, chosen.expires_on.get(channel))
        for app, chosen in config.apps.items()
        for channel, section in chosen.senders.items()
    }
    ends |= {name: tls.ends_at() for name, tls in doors.items()}
    return {name: ends_at for name, ends_at in ends.items() if ends_at is not None}


def end_of_section(section: object, expires_on: dt.date | None) -> Instant | None:
    """The first of the ends of the certificates in its files, and of *expires_on*, a day in UTC."""
    ends = [first_end(content) for content in _contents(file for name, file in files_of(section) if name != _TRUST)]
    if expires_on is not None:
        ends.append(from_datetime(dt.datetime.combine(expires_on, dt.time(), dt.UTC)))
    return min((each for each in ends if each is not None), default=None)


def files_of(section: object) -> list[tuple[str, str]]:
    """The settings of a sender that are files, and the files."""
    given = msgspec.structs.asdict(section) if isinstance(section, msgspec.Struct) else {}
    return [(name, str(value)) for name, value in given.items() if name.endswith("_file") and value is not None]


def _contents(files: Iterable[str]) -> Iterable[bytes]:
    for file in files:
        with suppress(OSError):
            yield Path(file).read_bytes()
