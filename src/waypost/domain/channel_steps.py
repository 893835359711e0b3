"""The channels of a notification: side by side, or one after the other where the one before reached nobody. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta, Struct

from waypost.domain.channel import Channel
from waypost.domain.errors import Fault
from waypost.domain.status import DeliveryStatus

STEPS_LIMIT: Final = 8

ChannelName = Annotated[str, Meta(min_length=1, max_length=32, pattern=r"^[a-z][a-z0-9_]*(?!\n)$")]
Duration = Annotated[str, Meta(max_length=8, pattern=r"^[1-9][0-9]{0,6}[smhd](?!\n)$", examples=["30s", "5m"])]


class SubmittedStep(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A step of a fallback: a channel, and how long the channels after it wait for it."""

    to: Annotated[
        ChannelName, Meta(description="A channel, or `push` for all that reach an app or a browser.", examples=["push"])
    ]
    until: Annotated[
        Literal["sent", "delivered", "opened"] | None,
        Meta(description="What ends the wait: then nothing after it is sent. `delivered` if only `for` is given."),
    ] = None
    wait: Annotated[
        Duration | None,
        Meta(description="How long the channels after it wait for that: `30s`, `5m`, `2h` or `1d`."),
    ] = msgspec.field(default=None, name="for")


SubmittedChannels = Annotated[tuple[ChannelName | SubmittedStep, ...], Meta(max_length=STEPS_LIMIT)]


class ChannelStep(Struct, frozen=True, omit_defaults=True):
    """A step: a channel or a family of channels, and whether what comes after waits for it."""

    to: str
    until: DeliveryStatus | None = None
    """The status that makes what comes after needless; None: it is sent side by side."""
    for_s: int = 0
    """Seconds for which what comes after waits for *until*."""

    def means(self, channel: Channel, family: str) -> bool:
        """Tell whether it names *channel*, which is of *family*."""
        return self.to in (channel, family)


def steps_of(said: Sequence[str | SubmittedStep]) -> tuple[ChannelStep, ...]:
    """Build the steps that were asked for."""
    return tuple([_step(each) for each in said])


def _step(said: str | SubmittedStep) -> ChannelStep:
    if isinstance(said, str):
        return ChannelStep(said)
    if said.wait is None:
        return ChannelStep(said.to)
    return ChannelStep(said.to, DeliveryStatus(said.until or "delivered"), seconds_of(said.wait))


def seconds_of(duration: str) -> int:
    """Return the seconds of a duration such as ``30s``, ``5m``, ``2h`` or ``1d``."""
    return int(duration[:-1]) * _SECONDS[duration[-1]]


def step_faults(said: Sequence[str | SubmittedStep], ttl_s: int) -> Iterator[Fault]:
    """Find what makes no sense in the channels of a submission that is worth sending for *ttl_s* seconds."""
    named = [each if isinstance(each, str) else each.to for each in said]
    for n, name in enumerate(named):
        if name in named[:n]:
            yield Fault(f"channels[{n}]", f"names {name} twice")
    waits = 0
    for n, each in enumerate(said):
        if isinstance(each, str) or (each.until is None and each.wait is None):
            continue
        if each.wait is None:
            yield Fault(f"channels[{n}].for", "required beside until: how long to wait, such as 30s")
            continue
        waits += seconds_of(each.wait)
        if n == len(said) - 1:
            yield Fault(f"channels[{n}].for", "nothing comes after it; leave it out, or name what takes over")
        elif waits >= ttl_s:
            yield Fault(f"channels[{n}].for", f"what comes after it would be too late: the ttl is {ttl_s} seconds")


_SECONDS: Final[Mapping[str, int]] = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}
