"""Preferences: which types of message a user wants by which channel, and what an app declares of its types. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final, Literal, NewType

from msgspec import UNSET, Meta, Struct, UnsetType

from waypost.domain.channel import Channel
from waypost.domain.channel_steps import ChannelName, seconds_of
from waypost.domain.quiet_hours import Hours
from waypost.domain.submission import Locale, NotificationType, Seconds
from waypost.domain.time import SECOND_MS

CAP_LIMIT: Final = 10_000
LONGEST_CAP_S: Final = 31 * 86_400
"""The longest time that a cap may count over, seconds: so long are counts kept."""

Language = NewType("Language", Locale)
Title = Annotated[str, Meta(min_length=1, max_length=100)]


class Cap(Struct, frozen=True, kw_only=True):
    """The most notifications that a user is sent in a time."""

    limit: Annotated[int, Meta(ge=1, le=CAP_LIMIT)]
    """How many."""
    per: Annotated[str, Meta(pattern=r"^(day|[1-9][0-9]{0,4}[smhd])(?!\n)$")] = "day"
    """A `day` of the user's calendar, or a time that rolls: `1h`, `24h`, `7d`; 31 days at most."""
    over: Literal["hold", "drop", "degrade"] = "hold"
    """What is over it waits until there is room (`hold`), is not sent (`drop`), or is in the feed alone (`degrade`)."""

    @property
    def rolls_ms(self) -> int | None:
        """The time that it counts over, in milliseconds; None is a day of the calendar."""
        return None if self.per == "day" else seconds_of(self.per) * SECOND_MS


class TypeSettings(Struct, frozen=True, kw_only=True):
    """A type of message, as an app declares it."""

    titles: dict[Language, Title] = {}
    """What the page for users calls it, by language. Unset: its name."""
    enabled: bool = True
    """Whether it is sent to users who have not said."""
    channels: tuple[ChannelName, ...] = ()
    """The channels it is sent by to users who have not said. Unset: all."""
    ttl_s: Seconds | None = None
    """Seconds for which sending it is worthwhile, where a submission says nothing. Unset: `defaults.ttl_s`."""
    critical: bool = False
    """Users cannot turn it off, and caps of the app do not count it."""
    quiet_hours: Literal["defer", "merge", "skip", "pass"] | None = None
    """In quiet hours it waits for their end (`defer`), becomes part of one message then (`merge`), is not sent
    (`skip`), or is (`pass`). Unset: `defer`, of a critical one `pass`."""
    cap: Cap | None = None
    """The most that a user is sent of it."""
    channel_caps: dict[Channel, Cap] = {}
    """The same for one channel."""


class DigestSettings(Struct, frozen=True, kw_only=True):
    """The message in which what came in quiet hours is merged; one alone is sent as it is."""

    titles: dict[Language, Title] = {}
    """Its title by language, with `{count}`. Unset: `{count} messages`."""
    lines: Annotated[int, Meta(ge=1, le=50)] = 10
    """The most that it lists; the rest is counted."""


class PreferenceSettings(Struct, frozen=True, kw_only=True):
    """Settings of all types, for users who have not said."""

    quiet_hours: Hours | None = None
    """Quiet hours, such as `22:00-07:00`. Unset: none."""
    cap: Cap | None = None
    """The most that a user is sent of all types but critical ones; a user's own `frequency_limit` comes in its
    place."""
    digest: DigestSettings = DigestSettings()
    """The message of types whose `quiet_hours` are `merge`."""


class TypeChoice(Struct, frozen=True, omit_defaults=True):
    """A user's choice about one type."""

    enabled: bool | None = None
    channels: dict[str, bool] = {}


class Preferences(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """The preferences of a user; of one who has said nothing they are empty."""

    enabled: bool = True
    """False turns everything off."""
    channels: dict[str, bool] = {}
    """False turns a whole channel off."""
    types: dict[str, TypeChoice] = {}
    quiet_hours: Hours | None = None
    """The user's own; None is the app's."""
    frequency_limit: int | None = None
    """The most notifications a day; None is the app's cap."""


NOTHING_SAID: Final = Preferences()
ORDINARY: Final = TypeSettings()
"""The settings of a type that nobody declared."""
CRITICAL: Final = TypeSettings(critical=True)
"""The same, of what a caller calls critical."""


class TypeChange(Struct, frozen=True, kw_only=True):
    """A change of a user's choice about one type; what is left out stays, None is back to the app's default."""

    enabled: bool | UnsetType | None = UNSET
    channels: Mapping[str, bool | None] = {}


class PreferenceChange(Struct, frozen=True, kw_only=True):
    """A change of preferences; what is left out stays, None is back to the app's default."""

    enabled: bool | UnsetType = UNSET
    channels: Mapping[str, bool | None] = {}
    types: Mapping[str, TypeChange | None] = {}
    quiet_hours: Hours | UnsetType | None = UNSET
    frequency_limit: int | UnsetType | None = UNSET


def changed(said: Preferences, change: PreferenceChange) -> Preferences:
    """Return *said* after *change*."""
    types = dict(said.types)
    for name, each in change.types.items():
        choice = TypeChoice() if each is None else _changed_choice(types.get(name, TypeChoice()), each)
        types.pop(name, None)
        if choice != TypeChoice():
            types[name] = choice
    return Preferences(
        enabled=said.enabled if change.enabled is UNSET else change.enabled,
        channels=_merged(said.channels, change.channels),
        types=types,
        quiet_hours=said.quiet_hours if change.quiet_hours is UNSET else change.quiet_hours,
        frequency_limit=said.frequency_limit if change.frequency_limit is UNSET else change.frequency_limit,
    )


def _changed_choice(choice: TypeChoice, change: TypeChange) -> TypeChoice:
    enabled = choice.enabled if change.enabled is UNSET else change.enabled
    return TypeChoice(enabled, _merged(choice.channels, change.channels))


def _merged(said: Mapping[str, bool], change: Mapping[str, bool | None]) -> dict[str, bool]:
    return {name: value for name, value in {**said, **change}.items() if value is not None}


def wants(said: Preferences, kind: str | None, settings: TypeSettings, channel: str) -> bool:
    """Tell whether the user wants the type *kind* by *channel* (or by that family of channels).

    What is turned off as a whole is off. Of a type, the choice about its channel counts first.
    """
    if said is NOTHING_SAID:  # as most users have
        return settings.enabled and (not settings.channels or channel in settings.channels)
    if not said.enabled or not said.channels.get(channel, True):
        return False
    choice = said.types.get(kind, _NO_CHOICE) if kind is not None else _NO_CHOICE
    if choice.enabled is False:
        return False
    by_channel = choice.channels.get(channel)
    if by_channel is not None:
        return by_channel
    return (choice.enabled or settings.enabled) and (not settings.channels or channel in settings.channels)


_NO_CHOICE: Final = TypeChoice()


def settings_of(types: Mapping[NotificationType, TypeSettings], kind: str | None, *, is_critical: bool) -> TypeSettings:
    """Return what the app declares of the type *kind*; of one it does not, the caller's word *is_critical* counts."""
    declared = None if kind is None else types.get(NotificationType(kind))
    if declared is not None:
        return declared
    return CRITICAL if is_critical else ORDINARY
