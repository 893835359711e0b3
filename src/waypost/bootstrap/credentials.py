"""The credentials that a process reloads: the sections of its senders, and the certificates of its listeners."""

from __future__ import annotations

import asyncio
import datetime as dt
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import msgspec

from waypost.bootstrap.senders import sections_of, sender_of
from waypost.config import AppSettings, Config
from waypost.domain.credential import CredentialId
from waypost.domain.errors import ConfigurationError
from waypost.domain.ids import AppId
from waypost.domain.time import Instant, from_datetime
from waypost.ports.plugin import Means
from waypost.ports.sender import Sender
from waypost.runtime.credential_reload import LoadedCredential
from waypost.runtime.renewal import RenewableSender
from waypost.runtime.tls import ServerTls, first_end

_TRUST: Final = "ca_file"
"""The setting of the authorities that a sender trusts: their ends are not the app's affair."""


class Sections:
    """The sections of all apps as the file says now; fulfils ``LoadedCredential``: a changed file is read again."""

    name: Final = "configuration"

    def __init__(self, config: Config, path: Path | None, read: Callable[[], Config]) -> None:
        self._apps: Mapping[AppId, AppSettings] = config.apps
        self._files = () if path is None else (str(path),)
        self._read = read

    def of(self, credential: CredentialId) -> Any | None:
        """Find the section of a sender; None where there is none any more."""
        app = self._apps.get(credential.app)
        return None if app is None else app.senders.get(credential.slot)

    def end_of(self, credential: CredentialId) -> dt.date | None:
        """Return the day that the configuration names as the end of a credential."""
        app = self._apps.get(credential.app)
        return None if app is None else app.expires_on.get(credential.slot)

    def rehearsals(self) -> dict[str, Instant]:
        """Return when the renewal of each credential was last rehearsed, where the configuration says so."""
        return rehearsals_of(self._apps)

    def made_of(self) -> tuple[object, Sequence[str]]:
        """See LoadedCredential."""
        return None, self._files

    async def reload(self) -> None:
        """See LoadedCredential."""
        self._apps = (await asyncio.to_thread(self._read)).apps

    def ends_at(self) -> Instant | None:
        """See LoadedCredential."""
        return None


class SenderCredential:
    """The credential of one sender (fulfils ``LoadedCredential``)."""

    def __init__(
        self, credential: CredentialId, sections: Sections, make: Callable[[CredentialId, Any], Sender]
    ) -> None:
        self.name: Final = str(credential)
        self._credential = credential
        self._sections = sections
        self._make = make
        self.on_renewed: Callable[[CredentialId], None] = lambda _: None
        """Told after the provider gets another credential."""
        self.sender: Final = RenewableSender(make(credential, self._section))

    @property
    def _section(self) -> Any | None:
        return self._sections.of(self._credential)

    def made_of(self) -> tuple[object, Sequence[str]]:
        """See LoadedCredential."""
        return self._section, [file for _, file in files_of(self._section)]

    async def reload(self) -> None:
        """See LoadedCredential."""
        section = self._section
        if section is None:
            raise ConfigurationError(self._credential.section, "is gone; it is used until a restart")
        await self.sender.renew(lambda: self._make(self._credential, section))
        self.on_renewed(self._credential)

    def ends_at(self) -> Instant | None:
        """Return the earliest end of its certificates and of the day that the configuration names."""
        return end_of_section(self._section, self._sections.end_of(self._credential))


def credentials_of(config: Config, means: Means, sections: Sections) -> dict[CredentialId, SenderCredential]:
    """Build the credential of each sender, not yet started."""
    found = sections_of(config)

    def make(credential: CredentialId, section: Any) -> Sender:
        plugin, _ = found[credential]
        return sender_of(means, credential, plugin, section)

    return {credential: SenderCredential(credential, sections, make) for credential in found}


def held_by(
    sections: Sections, credentials: Mapping[CredentialId, SenderCredential], listening: Mapping[str, ServerTls]
) -> list[LoadedCredential]:
    """List all credentials of a process, the configuration first: it says what the others are made of."""
    senders: list[LoadedCredential] = [sections, *credentials.values()] if credentials else []
    return [*senders, *listening.values()]


def ends_of(config: Config, listening: Mapping[str, ServerTls]) -> dict[str, Instant]:
    """Return when each credential and certificate ends, where that is known."""
    ends = {
        str(credential): end_of_section(section, config.apps[credential.app].expires_on.get(credential.slot))
        for credential, (_, section) in sections_of(config).items()
    }
    ends |= {name: tls.ends_at() for name, tls in listening.items()}
    return {name: ends_at for name, ends_at in ends.items() if ends_at is not None}


def rehearsals_of(apps: Mapping[AppId, AppSettings]) -> dict[str, Instant]:
    """Return when the renewal of each credential was last rehearsed, where the settings say so."""
    return {
        str(CredentialId.of(app, slot)): _begin_of(day)
        for app, chosen in apps.items()
        for slot, day in chosen.rehearsed_on.items()
    }


def end_of_section(section: object, expires_on: dt.date | None) -> Instant | None:
    """Return the earliest end of the certificates in a section's files, and of *expires_on*, a day in UTC."""
    ends = [first_end(content) for content in _contents(file for name, file in files_of(section) if name != _TRUST)]
    if expires_on is not None:
        ends.append(_begin_of(expires_on))
    return min((each for each in ends if each is not None), default=None)


def _begin_of(day: dt.date) -> Instant:
    return from_datetime(dt.datetime.combine(day, dt.time(), dt.UTC))


def files_of(section: object) -> list[tuple[str, str]]:
    """List the settings of a sender that name files, and the files."""
    given = msgspec.structs.asdict(section) if isinstance(section, msgspec.Struct) else {}
    return [(name, str(value)) for name, value in given.items() if name.endswith("_file") and value is not None]


def _contents(files: Iterable[str]) -> Iterable[bytes]:
    for file in files:
        with suppress(OSError):
            yield Path(file).read_bytes()
