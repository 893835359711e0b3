"""The addresses that may be connected to: a subscription names a host, and whoever runs its DNS names the address."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, auto
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

from waypost.http2 import Address, DialError, Resolve


class AllowedRange(Enum):
    """The range of addresses that an entry of the allow-list opens."""

    PUBLIC = auto()
    """The internet alone."""
    ANYWHERE = auto()
    """Private networks, too: the operator has named this very origin."""
    PRIVATE = auto()
    """Private networks alone: what is not encrypted does not leave them."""


_OWN = tuple(
    ip_network(text) for text in ("10.0.0.0/8", "127.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "::1/128", "fc00::/7")
)
"""Loopback, and the networks of one house (RFC 1918, RFC 4193)."""

_NOT_PUBLIC = _OWN + tuple(
    ip_network(text)
    for text in (
        "0.0.0.0/8",  # this network
        "100.64.0.0/10",  # carrier-grade NAT (RFC 6598)
        "169.254.0.0/16",  # link-local, and the metadata services of clouds
        "192.0.0.0/24",  # protocol assignments (RFC 6890)
        "192.0.2.0/24",  # documentation (RFC 5737), as two more below
        "192.88.99.0/24",  # 6to4 relays (RFC 7526)
        "198.18.0.0/15",  # benchmarks (RFC 2544)
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, and broadcast
        "::/96",  # unspecified, and IPv4 in the form of old
        "64:ff9b::/96",  # NAT64 (RFC 6052): any IPv4 address could be behind it
        "64:ff9b:1::/48",  # local NAT64 (RFC 8215)
        "100::/64",  # discard (RFC 6666)
        "2001::/23",  # protocol assignments, Teredo among them
        "2001:db8::/32",  # documentation
        "2002::/16",  # 6to4: any IPv4 address could be behind it
        "3fff::/20",  # documentation (RFC 9637)
        "5f00::/16",  # segment routing (RFC 9602)
        "fe80::/10",  # link-local
        "fec0::/10",  # site-local of old
        "ff00::/8",  # multicast
    )
)


def may_dial(reach: AllowedRange, address: str) -> bool:
    """Tell whether *address*, as a resolver writes it, is within *reach*; what is no address is not."""
    try:
        found = ip_address(address.partition("%")[0])
    except ValueError:
        return False
    if isinstance(found, IPv6Address) and found.ipv4_mapped is not None:
        found = found.ipv4_mapped
    match reach:
        case AllowedRange.PUBLIC:
            return not _within(found, _NOT_PUBLIC)
        case AllowedRange.ANYWHERE:
            return not found.is_multicast and not found.is_unspecified
        case AllowedRange.PRIVATE:
            return _within(found, _OWN)


def _within(address: IPv4Address | IPv6Address, networks: Sequence[object]) -> bool:
    return any(address in network for network in networks)  # type: ignore[operator] # of either family, both compare


def within_reach(resolve: Resolve, reach: AllowedRange) -> Resolve:
    """Wrap *resolve*: DialError where one address of a host is out of *reach*, then none of them is trusted.

    What is checked is what is dialed, anew for each connection, so that a name which changes its mind gains nothing.
    """

    async def checked(host: str, port: int) -> Sequence[Address]:
        found = await resolve(host, port)
        if not all(may_dial(reach, str(address[4][0])) for address in found):
            raise DialError(f"{host} has an address that may not be dialed for it")
        return found

    return checked
