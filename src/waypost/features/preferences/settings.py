"""Settings of preferences: what makes no sense in the types that an app declares."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Final

from msgspec import Struct

from waypost.channels.inapp.settings import CHANNEL as FEED
from waypost.config import AppSettings, Config
from waypost.domain.errors import ConfigurationError
from waypost.domain.preference_link import PreferenceLinks
from waypost.domain.preferences import LONGEST_CAP_S, Cap
from waypost.domain.time import SECOND_MS

SECRET_BYTES: Final = 32
"""The fewest bytes of the file, as many as the key of HMAC-SHA256 needs (RFC 2104 section 3)."""


class PreferenceSecret(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The secret behind links to the page of preferences."""

    secret_file: str | None = None
    """At least 32 random bytes that sign links to the page for users, the same on every machine; with
    `rest.public_url`. Unset: no links."""


def links_of(config: Config) -> PreferenceLinks | None:
    """Return the maker of links; None where none are made. ConfigurationError where it lacks address or secret."""
    settings: PreferenceSecret = config.features.get("preferences") or PreferenceSecret()
    if settings.secret_file is None:
        return None
    if config.rest.public_url is None:
        raise ConfigurationError("rest.public_url", "is required: links to preferences need the address of this API")
    return PreferenceLinks(config.rest.public_url, _read(Path(settings.secret_file)))


@cache
def _read(file: Path) -> bytes:
    try:
        secret = file.read_bytes()
    except OSError as away:
        raise ConfigurationError("preferences.secret_file", f"cannot be read: {away.strerror}") from None
    if len(secret) < SECRET_BYTES:
        raise ConfigurationError("preferences.secret_file", f"has {len(secret)} bytes, at least {SECRET_BYTES}")
    return secret


def check_preferences(config: Config) -> None:
    """Refuse, with ConfigurationError, caps that cannot be kept, and links that cannot be made."""
    links_of(config)
    for name, app in config.apps.items():
        for path, cap in _caps(app).items():
            if cap is not None and (cap.rolls_ms or 0) > LONGEST_CAP_S * SECOND_MS:
                raise ConfigurationError(f"apps.{name}.{path}.per", "is 31 days at most")
            if cap is not None and cap.over == "degrade" and FEED not in app.senders:
                why = "`degrade` needs a feed, and the app has none: `inapp: {}` gives it one"
                raise ConfigurationError(f"apps.{name}.{path}.over", why)


def _caps(app: AppSettings) -> dict[str, Cap | None]:
    caps: dict[str, Cap | None] = {"preferences.cap": app.preferences.cap}
    for kind, settings in app.types.items():
        caps[f"types.{kind}.cap"] = settings.cap
        caps |= {f"types.{kind}.channel_caps.{channel}": cap for channel, cap in settings.channel_caps.items()}
    return caps
