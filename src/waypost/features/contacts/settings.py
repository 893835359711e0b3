"""Settings of contacts for all apps: the secret that codes and links are made from."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Final

from msgspec import Struct

from waypost.config import Config
from waypost.domain.errors import ConfigurationError

SECRET_BYTES: Final = 32
"""The fewest bytes of the file, as many as the key of HMAC-SHA256 needs (RFC 2104 section 3)."""
LINK: Final = "{link}"
CODE: Final = "{code}"
MINUTES: Final = "{minutes}"


class ContactSecret(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The secret behind codes and links."""

    secret_file: str | None = None
    """At least 32 random bytes, the same on every machine; `apps.<app>.contacts.verify` needs it."""


def verifies(config: Config) -> bool:
    """Tell whether any app has its contacts verified."""
    return any(app.contacts.verify for app in config.apps.values())


def secret_of(settings: ContactSecret) -> bytes:
    """Read the secret; ConfigurationError where there is none."""
    if settings.secret_file is None:
        raise ConfigurationError("contacts.secret_file", "is required where contacts are verified")
    return _read(Path(settings.secret_file))


def check_contacts(config: Config) -> None:
    """Refuse, with ConfigurationError, what could never be verified: no secret, or texts that say neither way."""
    if not verifies(config):
        return
    secret_of(config.features.get("contacts") or ContactSecret())
    for name, app in config.apps.items():
        said = app.contacts.title + app.contacts.text
        path = f"apps.{name}.contacts.text"
        if app.contacts.verify and CODE not in said and LINK not in said:
            raise ConfigurationError(path, f"says neither {CODE} nor {LINK}")
        if app.contacts.verify and LINK in said and config.rest.public_url is None:
            raise ConfigurationError("rest.public_url", f"is required: {path} has a {LINK}")


@cache
def _read(file: Path) -> bytes:
    try:
        secret = file.read_bytes()
    except OSError as away:
        raise ConfigurationError("contacts.secret_file", f"cannot be read: {away.strerror}") from None
    if len(secret) < SECRET_BYTES:
        raise ConfigurationError("contacts.secret_file", f"has {len(secret)} bytes, at least {SECRET_BYTES}")
    return secret
