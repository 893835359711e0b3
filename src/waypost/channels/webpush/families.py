"""The push services' differences in what they want of a request that is otherwise the same."""

from __future__ import annotations

from enum import Enum, auto

from waypost.channels.push.endpoints import Endpoint


class Family(Enum):
    """A vendor of browsers who runs a push service."""

    APPLE = auto()
    WINDOWS = auto()
    ANY = auto()
    """Every other vendor: as RFC 8030 says."""


_SUFFIXES = {".push.apple.com": Family.APPLE, ".notify.windows.com": Family.WINDOWS}


def family_of(endpoint: Endpoint) -> Family:
    """Find the vendor by the host's last labels, as the allow-list knows them."""
    return next((family for suffix, family in _SUFFIXES.items() if endpoint.host.endswith(suffix)), Family.ANY)


def ttl_headers(family: Family, ttl_s: int) -> tuple[tuple[str, str], ...]:
    """Build the headers for a time to live.

    RFC 8030 section 5.2: 0 is "now or never". Windows answers 400 to a TTL of 0 unless it is also told not to keep the
    message. Apple documents BadTtl for what is not positive, though 0 was seen to be taken: 1 is valid by both accounts
    and comes to the same.
    """
    if ttl_s == 0 and family is Family.WINDOWS:
        return (("ttl", "0"), ("x-wns-cache-policy", "no-cache"))
    if ttl_s == 0 and family is Family.APPLE:
        return (("ttl", "1"),)
    return (("ttl", str(ttl_s)),)
