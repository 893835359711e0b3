"""Which addresses may be connected to, whatever a name leads to."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence

import pytest

from waypost.channels.push.addresses import AllowedRange, may_dial, within_reach
from waypost.http2 import Address, DialError

PUBLIC = ["93.184.215.14", "8.8.8.8", "2606:2800:21f:cb07:6820:80da:af6b:8b2c", "::ffff:8.8.8.8"]
PRIVATE = ["127.0.0.1", "127.9.9.9", "10.1.2.3", "172.31.255.255", "192.168.1.1", "::1", "fd00::1", "::ffff:10.0.0.1"]
ODD = [
    "0.0.0.0",  # noqa: S104 - an address to refuse, not to listen on
    "100.64.0.1",
    "169.254.169.254",
    "192.0.0.1",
    "192.0.2.1",
    "198.18.0.1",
    "224.0.0.1",
    "255.255.255.255",
    "::",
    "::7f00:1",
    "64:ff9b::7f00:1",
    "64:ff9b:1::1",
    "2001::1",
    "2001:db8::1",
    "2002:7f00:1::",
    "fe80::1%eth0",
    "fec0::1",
    "ff02::1",
    "::ffff:169.254.169.254",
    "localhost",
    "",
]


@pytest.mark.parametrize("address", PUBLIC)
def test_the_internet_is_for_hosts(address: str) -> None:
    assert may_dial(AllowedRange.PUBLIC, address)
    assert may_dial(AllowedRange.ANYWHERE, address)
    assert not may_dial(AllowedRange.PRIVATE, address)


@pytest.mark.parametrize("address", PRIVATE)
def test_private_networks_are_for_origins_that_the_operator_names(address: str) -> None:
    assert not may_dial(AllowedRange.PUBLIC, address)
    assert may_dial(AllowedRange.ANYWHERE, address)
    assert may_dial(AllowedRange.PRIVATE, address)


@pytest.mark.parametrize("address", ODD)
def test_everything_odd_is_for_nobody(address: str) -> None:
    assert not may_dial(AllowedRange.PUBLIC, address)
    assert not may_dial(AllowedRange.PRIVATE, address)


def found(*names: str) -> list[Address]:
    return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (name, 443)) for name in names]


def ask(reach: AllowedRange, *names: str) -> Sequence[Address]:
    async def resolve(_host: str, _port: int) -> Sequence[Address]:
        return found(*names)

    return asyncio.run(_ask(within_reach(resolve, reach)))


async def _ask(resolve: object) -> Sequence[Address]:
    return await resolve("push.example", 443)  # type: ignore[operator,no-any-return] # a Resolve


def test_the_addresses_that_were_checked_are_those_that_are_dialed() -> None:
    assert ask(AllowedRange.PUBLIC, "8.8.8.8", "8.8.4.4") == found("8.8.8.8", "8.8.4.4")


def test_one_address_out_of_reach_spoils_the_name() -> None:
    """DNS rebinding answers with a public address and a private one; the text names neither."""
    with pytest.raises(DialError) as caught:
        ask(AllowedRange.PUBLIC, "8.8.8.8", "127.0.0.1")
    assert "127.0.0.1" not in str(caught.value)
    assert "push.example" in str(caught.value)
