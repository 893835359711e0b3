"""Who is let in: where the dashboard is served, and which requests a browser may have been tricked into."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final
from urllib.parse import urlsplit

from waypost.config import Config
from waypost.features.dashboard.settings import DashboardSettings
from waypost.runtime.listening import is_loopback

_FORWARDED: Final = (
    "forwarded",
    "via",
    "x-forwarded",
    "x-real-ip",
    "x-client-ip",
    "true-client-ip",
    "cf-connecting-ip",
)
"""The beginnings of the fields by which a proxy says that somebody is behind it."""
_OF_PROXIES: Final = "1.0"
"""The version of HTTP that no browser speaks, but nginx does as it comes: without any field, and with our own name."""


def is_served(config: Config, settings: DashboardSettings) -> bool:
    """Tell whether there is a dashboard with these settings."""
    return settings.enabled and (settings.has_login or is_local(config))


def is_local(config: Config) -> bool:
    """Tell whether only this machine reaches the service, as far as the settings say."""
    public = config.rest.public_url
    is_public = public is not None and not is_loopback(urlsplit(public).hostname or "")
    return is_loopback(config.listen.host) and not is_public and not config.limits.trusted_proxies


def is_from_here(version: str, host: str, peer: str, names: Iterable[str]) -> bool:
    """Tell whether a request comes from this machine and was meant for it.

    A page elsewhere may have a name of its own that leads here (DNS rebinding): *host*, as the browser names it, must
    be the loopback. What a proxy passes on is somebody else's.
    """
    try:
        named = urlsplit(f"//{host}")
        name, _ = named.hostname or "", named.port
    except ValueError:  # a bracket without an address in it, or a port past the last
        return False
    is_passed_on = version == _OF_PROXIES or any(each.startswith(_FORWARDED) for each in names)
    return is_loopback(name) and is_loopback(peer) and not is_passed_on


def is_cross_site(method: str, headers: Mapping[str, str]) -> bool:
    """Tell whether a page of somewhere else makes the browser send this (Fetch Metadata, ``Origin``).

    A link from elsewhere may be followed.
    """
    site = headers.get("sec-fetch-site", "none")
    follows_link = method == "GET" and headers.get("sec-fetch-mode") == "navigate"
    if site not in {"none", "same-origin"} and not follows_link:
        return True
    origin = headers.get("origin")
    return method != "GET" and origin is not None and origin.partition("://")[2] != headers.get("host")
