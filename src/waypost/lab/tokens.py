"""The devices the lab knows: which tokens are good, for which topic, and which have died."""

import re
import secrets
from collections.abc import Callable
from typing import Literal

import msgspec

Platform = Literal["ios", "android", "fid"]
"""The platform; a `fid` is a Firebase installation id: what FCM calls a device by without a token."""

_IOS_FORM = re.compile(r"(?:[0-9a-fA-F]{2}){32,100}\Z")
_FID_FORM = re.compile(r"[c-f][A-Za-z0-9_-]{21}\Z")
_ANDROID_FORM = re.compile(r"[A-Za-z0-9_:%.-]{20,4096}\Z")


class LabDevice(msgspec.Struct, frozen=True, gc=False):
    """A token made by the lab."""

    platform: Platform
    topic: str | None = None
    environment: str | None = None


class KnownTokens:
    """Known tokens and deaths; a death counts whatever else is said of the token."""

    def __init__(self, *, accept_any: bool) -> None:
        self.accept_any = accept_any
        self.devices: dict[str, LabDevice] = {}
        self.deaths: dict[str, int] = {}
        """The deaths: token to UNIX milliseconds."""

    def make(self, platform: Platform, count: int, *, topic: str | None, environment: str | None) -> list[str]:
        """Make tokens that look like the platform's."""
        made = [_MAKERS[platform]() for _ in range(count)]
        device = LabDevice(platform, topic, environment)
        self.devices.update((token, device) for token in made)
        return made

    def good(self, platform: Platform, token: str) -> bool:
        """Tell whether *token* could have been handed out by *platform*: known here, or well-formed and any will do."""
        device = self.devices.get(token)
        if device is not None:
            return device.platform == platform
        return self.accept_any and _FORMS[platform].match(token) is not None


def _ios_token() -> str:
    return secrets.token_hex(32)


def _android_token() -> str:
    """Make an installation id, a colon, and the opaque part (142 to 163 characters in all)."""
    return f"{secrets.token_urlsafe(16)}:APA91b{secrets.token_urlsafe(100)}"


def _installation_id() -> str:
    """Make 22 characters of base64url, of which the first four bits are 0111."""
    return secrets.choice("cdef") + secrets.token_urlsafe(16)[:21]


_MAKERS: dict[Platform, Callable[[], str]] = {"ios": _ios_token, "android": _android_token, "fid": _installation_id}
_FORMS: dict[Platform, re.Pattern[str]] = {"ios": _IOS_FORM, "android": _ANDROID_FORM, "fid": _FID_FORM}
