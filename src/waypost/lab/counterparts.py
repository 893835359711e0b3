"""Gateways beside those of Apple, Google and the browsers: each is one value under the entry points `waypost.lab`."""

import asyncio
from collections.abc import Callable
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Protocol

import msgspec

from waypost.lab.exchange import Gateway

ENTRY_POINTS = "waypost.lab"
OWN = ("apns", "apns_sandbox", "apns_broadcast", "apns_channels", "fcm", "webpush", "oauth", "metadata")


class Made(msgspec.Struct, frozen=True):
    """A device of a further gateway."""

    token: str
    """The token by which records, faults and deaths name it."""
    shown: dict[str, Any]
    """The fields that an app would register: at least `endpoint`, with `keys` where it has some."""


class FurtherGateway(Gateway, Protocol):
    """A gateway that makes its own devices."""

    origin: str
    """The address at which it answers; set before the first request."""

    def make(self, wanted: dict[str, Any]) -> Made:
        """Make a device. Raises ValueError for what cannot be asked for."""


class GatewayContext(msgspec.Struct, frozen=True):
    """The parts of the lab that a gateway is given."""

    directory: Path
    deaths: dict[str, int]
    """The deaths: token to UNIX milliseconds."""
    strict: bool
    clock: Callable[[], float]


class Account(msgspec.Struct, frozen=True):
    """The account that a sender has at its gateway."""

    channel: str
    """The channel of the sender, and the name of its section in an app's settings."""
    platform: str
    """The platform of the devices that the gateway makes."""
    settings: Callable[[Path, str], dict[str, Any]]
    """Builds the section by which the sender reaches the gateway, given the lab's folder and the gateway's address."""
    prompt: dict[str, Any] = {}
    """The settings of a sender that soon gives up waiting: where nothing answers, checks need not wait for long."""


class Counterpart(msgspec.Struct, frozen=True):
    """The lab's side of one sender."""

    name: str
    """The name, also of its address, and of `where` in fault rules."""
    build: Callable[[GatewayContext], FurtherGateway]
    speak: Callable[..., asyncio.Protocol] | None = None
    """Makes the protocol of a connection, where it is no HTTP: given the gateway, its `Reception`, and the lab's TLS.

    It has two ports then: a plain one, which may begin TLS later, and one with TLS from the first byte (`<name>_tls`).
    """
    scheme: str = "http"
    """The scheme of its addresses; with TLS from the first byte an `s` follows."""
    account: Account | None = None
    """The account of its sender: with it `waypost lab check --sender` and the senders' contract know how to begin."""


@cache
def counterparts() -> tuple[Counterpart, ...]:
    """Load every counterpart that is installed, by name."""
    found = sorted(entry_points(group=ENTRY_POINTS), key=lambda entry: entry.name)
    return tuple(entry.load() for entry in found)


def gateway_names() -> tuple[str, ...]:
    """List every gateway that a rule may name."""
    return (*OWN, *(each.name for each in counterparts()))


def further_addresses() -> tuple[str, ...]:
    """List the addresses of all counterparts: one that speaks no HTTP has a second, with TLS from the first byte."""
    return tuple(
        name for each in counterparts() for name in (each.name, f"{each.name}_tls") if name == each.name or each.speak
    )
