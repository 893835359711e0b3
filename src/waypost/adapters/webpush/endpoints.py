"""Where subscriptions may point: a subscription comes from outside, so its endpoint is not trusted."""

from __future__ import annotations

import re

from msgspec import Struct

from waypost.domain.errors import ConfigurationError
from waypost.domain.ids import AppId

_HTTPS_PORT = 443
# Printable ASCII without a user name, a fragment or a backslash; the host is a name or an address in brackets.
_ENDPOINT = re.compile(
    r"https://(?P<host>[a-z0-9.-]+|\[[0-9a-f:.]+\])(?::(?P<port>[0-9]{1,5}))?(?P<path>/[!-\"$-\[\]-~]*)?", re.IGNORECASE
)
_HOST_PATTERN = re.compile(r"(\*\.)?[a-z0-9-]+(\.[a-z0-9-]+)*", re.IGNORECASE)


class Endpoint(Struct, frozen=True):
    """A subscription's address, taken apart; *host* has no brackets."""

    origin: str
    """As ``aud`` and ``:authority`` want it: lower case, the port only where it is not 443."""
    host: str
    port: int
    path: str

    @property
    def authority(self) -> str:
        """The origin without its scheme."""
        return self.origin.removeprefix("https://")


class _Rule(Struct, frozen=True):
    """A host (``.suffix`` for any label in front), a port, and how the path must begin."""

    host: str
    port: int = _HTTPS_PORT
    path: str = "/"

    def allows(self, endpoint: Endpoint) -> bool:
        same_host = endpoint.host.endswith(self.host) if self.host.startswith(".") else endpoint.host == self.host
        return same_host and endpoint.port == self.port and endpoint.path.startswith(self.path)


class EndpointGuard:
    """Lets through what the setting ``allow_endpoints`` names."""

    def __init__(self, app: AppId, allowed: tuple[str, ...]) -> None:
        self._rules = [_rule(f"apps.{app}.webpush.allow_endpoints[{i}]", text) for i, text in enumerate(allowed)]

    def admit(self, url: str) -> Endpoint | None:
        """The endpoint, or None where we may not or cannot send to it."""
        endpoint = take_apart(url)
        if endpoint is None or not any(rule.allows(endpoint) for rule in self._rules):
            return None
        return endpoint


def take_apart(url: str) -> Endpoint | None:
    """Read an endpoint; None unless it is a plain https URL."""
    found = _ENDPOINT.fullmatch(url)
    if found is None:
        return None
    port = int(found["port"] or _HTTPS_PORT)
    if not 0 < port <= 65_535:
        return None
    host = found["host"].lower()
    origin = f"https://{host}" if port == _HTTPS_PORT else f"https://{host}:{port}"
    return Endpoint(origin, host.strip("[]"), port, found["path"] or "/")


def _rule(setting: str, text: str) -> _Rule:
    if text.startswith("https://"):
        endpoint = take_apart(text)
        if endpoint is not None:
            return _Rule(endpoint.host, endpoint.port, endpoint.path)
    elif _HOST_PATTERN.fullmatch(text):
        return _Rule(text.lower().removeprefix("*"))
    raise ConfigurationError(setting, "must be a host, *.host, or https://host[:port][/path]")
