"""The endpoints that subscriptions may name: a subscription comes from outside, so its endpoint is not trusted."""

from __future__ import annotations

import re
from functools import lru_cache
from ipaddress import ip_address

from msgspec import Struct

from waypost.channels.push.addresses import AllowedRange, may_dial
from waypost.domain.errors import ConfigurationError

_PORTS = {"https": 443, "http": 80}
# Printable ASCII without a user name, a fragment or a backslash; the host is a name or an address in brackets. A path
# has both cases by itself: to ignore its case would take three times as long.
_ENDPOINT = re.compile(
    r"(?i:(?P<scheme>https?)://(?P<host>[a-z0-9.-]+|\[[0-9a-f:.]+\]))(?::(?P<port>[0-9]{1,5}))?"
    r"(?P<path>/[!-\"$-\[\]-~]*)?",
    re.ASCII,  # else two letters beyond it count as s and k in another case
)
_REMEMBERED_ORIGINS = 256
_REMEMBERED_URLS = 512
_HOST_PATTERN = re.compile(r"(\*\.)?[a-z0-9-]+(\.[a-z0-9-]+)*", re.IGNORECASE)


_BROWSERS_AT_GOOGLE = ("/fcm/send/", "/wp/", "/preprod/wp/")
"""The beginnings of a subscription's path at the host that FCM's API has, too."""
_GOOGLES_APIS = ("fcm.mtls.googleapis.com", "iid.googleapis.com", "oauth2.googleapis.com")

API_HOST = "is an address of Apple's or Google's API for senders, and no subscription's endpoint"


class Endpoint(Struct, frozen=True):
    """A subscription's address, taken apart; *host* has no brackets."""

    origin: str
    """The origin as ``aud`` and ``:authority`` want it: lower case, the port only where it is not the scheme's own."""
    scheme: str
    host: str
    port: int
    path: str
    reach: AllowedRange = AllowedRange.PUBLIC
    """The addresses of the host that may be connected to."""
    named: bool = True
    """Whether the operator named its host: what it says of our identity is believed then."""

    @property
    def authority(self) -> str:
        """The origin without its scheme."""
        return self.origin.removeprefix(f"{self.scheme}://")


_DOTS = re.compile(r"/(\.|%2e){1,2}(?=/|$)", re.IGNORECASE)
"""A segment that stands for another folder (RFC 3986, section 3.3): whoever resolves it leaves the path allowed."""


class _Rule(Struct, frozen=True):
    """A host (``.suffix`` for any labels in front, empty for any host), a port, and how the path must begin."""

    host: str
    reach: AllowedRange = AllowedRange.PUBLIC
    scheme: str = "https"
    port: int = _PORTS["https"]
    path: str = "/"

    def speaks_of(self, endpoint: Endpoint) -> bool:
        """Tell whether *endpoint* is at a host, scheme and port of ours, whatever its path."""
        exact = self.host and not self.host.startswith(".")
        same_host = endpoint.host == self.host if exact else endpoint.host.endswith(self.host)
        return same_host and (endpoint.scheme, endpoint.port) == (self.scheme, self.port)

    def holds(self, path: str) -> bool:
        """Tell whether *path* is ours or below it, by whole segments."""
        if self.path == "/":
            return True
        path = path.partition("?")[0]
        under = self.path if self.path.endswith("/") else f"{self.path}/"
        return (path == self.path or path.startswith(under)) and not _DOTS.search(path)


class EndpointGuard:
    """A guard that admits only the endpoints that the setting ``allow_endpoints`` names.

    A host or ``*.host`` reaches the internet alone. ``https://host`` is an origin that the operator has looked at: it
    may be in a private network, and ``http://host`` must be.
    """

    def __init__(self, section: str, allowed: tuple[str, ...]) -> None:
        """Read the allow-list; ConfigurationError names ``<section>.allow_endpoints[…]`` where it means nothing."""
        rules = [_rule(f"{section}.allow_endpoints[{i}]", text) for i, text in enumerate(allowed)]
        # Any host comes last: those that are named are to be known as such.
        self._rules = sorted(rules, key=lambda rule: not rule.host)
        self._of_origins: dict[str, list[tuple[_Rule, bool]]] = {}
        """By origin the rules that speak of it, in order, and whether each lets its host be dialed. Bounded: emptied
        when full."""

    def admit(self, url: str) -> Endpoint | None:
        """Return the endpoint, or None where we may not or cannot send to it."""
        found = take_apart(url)
        if found is None or is_sender_api(found):
            return None
        origin, scheme, host, port, path = found.origin, found.scheme, found.host, found.port, found.path
        for rule, is_dialed in self._of_origins.get(origin) or self._rules_for(found):
            if rule.holds(path):
                return Endpoint(origin, scheme, host, port, path, rule.reach, bool(rule.host)) if is_dialed else None
        return None

    def _rules_for(self, endpoint: Endpoint) -> list[tuple[_Rule, bool]]:
        if len(self._of_origins) >= _REMEMBERED_ORIGINS:
            self._of_origins.clear()
        is_name = not _is_address(endpoint.host)
        rules = self._of_origins[endpoint.origin] = [
            (rule, is_name or may_dial(rule.reach, endpoint.host)) for rule in self._rules if rule.speaks_of(endpoint)
        ]
        return rules


@lru_cache(_REMEMBERED_URLS)
def take_apart(url: str) -> Endpoint | None:
    """Read an endpoint; None unless it is a plain URL.

    Whoever lets a delivery in asks, and soon after whoever sends it.
    """
    found = _ENDPOINT.fullmatch(url)
    if found is None:
        return None
    path = found["path"] or ""
    at = _origin(url[: len(url) - len(path)])
    return None if at is None else Endpoint(at.origin, at.scheme, at.host, at.port, path or "/")


@lru_cache(_REMEMBERED_ORIGINS)
def _origin(url: str) -> Endpoint | None:
    """Read a plain URL without a path: the same for all subscriptions at one push service."""
    found = _ENDPOINT.fullmatch(url)
    assert found is not None
    scheme = found["scheme"].lower()
    port = int(found["port"] or _PORTS[scheme])
    if not 0 < port <= 65_535:
        return None
    host = found["host"].lower()
    origin = f"{scheme}://{host}" if port == _PORTS[scheme] else f"{scheme}://{host}:{port}"
    return Endpoint(origin, scheme, host.strip("[]"), port, "/")


def is_sender_api(endpoint: Endpoint) -> bool:
    """Tell whether APNs or FCM takes pushes of senders there: no browser subscribes to it, and its 401 or 403 is
    no word on our VAPID identity.
    """
    host = endpoint.host.rstrip(".")
    if host.endswith(".push.apple.com"):
        return host.startswith("api")
    if host == "fcm.googleapis.com":
        return not endpoint.path.startswith(_BROWSERS_AT_GOOGLE) or "/.." in endpoint.path
    return host in _GOOGLES_APIS


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def _rule(setting: str, text: str) -> _Rule:
    if "://" in text:
        endpoint = take_apart(text)
        if endpoint is not None:
            reach = AllowedRange.ANYWHERE if endpoint.scheme == "https" else AllowedRange.PRIVATE
            return _Rule(endpoint.host, reach, endpoint.scheme, endpoint.port, endpoint.path)
    elif text == "*" or _HOST_PATTERN.fullmatch(text):
        return _Rule(text.lower().removeprefix("*"))
    raise ConfigurationError(setting, "must be a host, *.host, *, or https:// or http://host[:port][/path]")
