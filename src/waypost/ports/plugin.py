"""Plug-ins: how a sender is plugged in, as one value named under the entry points ``waypost.senders``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from waypost.domain.channel import PUSH, Channel
from waypost.domain.content import Content, Kind
from waypost.domain.credential import CredentialId
from waypost.domain.device import Platform, RegistrationCheck, is_token_alone
from waypost.domain.drafting import ContentCheck
from waypost.domain.errors import Fault
from waypost.domain.ids import AppId
from waypost.domain.limits import FixedWindow, TokenBucket
from waypost.domain.routing import Rule
from waypost.ports.callbacks import ReadCallback
from waypost.ports.clock import Clock
from waypost.ports.sender import Sender
from waypost.telemetry import Telemetry

ENTRY_POINTS: Final = "waypost.senders"


class Means(Struct, frozen=True):
    """The tools that every sender is given."""

    clock: Clock
    telemetry: Telemetry
    shared_dir: Path | None = None
    """The folder of small files that the workers of this machine share; None where nothing is to be shared."""
    slot: int = 0
    """The number of the worker, from 0 to 63: no two of a machine at once have the same."""
    public_url: str | None = None
    """The address at which providers reach this API; None where they cannot."""
    ahead: bool = True
    """Whether a sender connects, and asks for access, before it has something to send; not where there are many."""


class Gateway(Struct, frozen=True, kw_only=True):
    """A server of a provider that a section of settings names."""

    url: str
    """``https://host[:port]``, or ``smtp://host[:port]`` for what speaks no TLS from the first byte."""
    ca_file: str | None = None
    proxy: str | None = None
    http2: bool = True
    """Whether nothing but HTTP/2 will do."""


def no_gateways(_settings: Any) -> Sequence[Gateway]:
    """Name no server: where to send is said by each address."""
    return ()


def no_faults(_content: Content, _kind: Kind) -> list[Fault]:
    """Accept every submission."""
    return []


def any_token(_app: AppId, _settings: Any) -> RegistrationCheck:
    """Return the check for devices that are known by their token, which may be any text."""
    return is_token_alone


class SenderPlugin(Struct, frozen=True, kw_only=True):
    """A channel: what it serves, what an operator can set for it, and how its senders are made.

    Names are 1 to 32 lower-case letters, digits and ``_``, a letter first. Nothing here does I/O or waits.
    """

    channel: Channel
    """The channel; also the name of the entry point, of the section of an app's settings, and in overrides."""
    title: str
    """The title that people know, such as ``Web Push``."""
    platforms: tuple[Platform, ...]
    """The platforms whose devices it reaches; each platform has one channel."""
    settings: type[Struct]
    """The settings in the section ``apps.<app>.<channel>``: frozen, with a text under each field; ``…_file`` is a path.
    """
    build: Callable[[CredentialId, Any, Means], Sender]
    """Builds the sender of one section, not yet started; an app may have several, each with its own credential."""
    content_check: ContentCheck = no_faults
    """The check for what the channel could never send, asked at intake in every app that has a section.

    One that says of itself what it looks at (domain/drafting) is asked less often.
    """
    registration_check: Callable[[AppId, Any], RegistrationCheck] = any_token
    """What it could never send to: the check of one app, by its section, or by None where the app has none.

    ConfigurationError where the section means nothing.
    """
    broadcasts: tuple[str, ...] = ()
    """The kinds of ``to`` that it takes: audiences that the provider itself sends on to."""
    rate: TokenBucket | None = TokenBucket(100, 10.0)
    """How much the provider takes in a time, where an operator does not say; None is as much as there is.

    What is unknown to us is treated with care (requirements S4-29).
    """
    per_device: FixedWindow | None = None
    """How much one address is sent in a time, where an operator does not say; None is as much as there is."""
    rules: tuple[Rule, ...] = ()
    """The routing rules that it brings, such as one that adds its address as a fallback."""
    family: str = PUSH
    """The name beside its own by which ``channels`` of a submission means it; what is of no ``push`` channel is sent
    to only where it is named."""
    canonical: Callable[[str], str] = str
    """Returns an address as it is stored, of one that people may write in several ways; what is none comes back."""
    callback: ReadCallback | None = None
    """Reads what its provider posts of what became of a message (``POST /callbacks/<app>/<credential>``)."""
    gateways: Callable[[Any], Sequence[Gateway]] = no_gateways
    """The provider's servers that a section needs, for `waypost doctor` to reach."""
    is_bound: bool = True
    """Whether an address belongs to the account that it was registered with, as a token does, so that no other account
    of the channel can stand in for it."""
    own_fields: tuple[str, ...] = ()
    """The fields of a submission that speak of this channel alone: refused in an app without a section."""
