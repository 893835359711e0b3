"""The shapes of preferences in the API."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Final

from msgspec import UNSET, Meta, Struct, UnsetType

from waypost.config import AppSettings
from waypost.domain.channel_steps import ChannelName
from waypost.domain.preferences import CAP_LIMIT, Language, PreferenceChange, Preferences, TypeChange, TypeChoice, wants
from waypost.domain.profile import zone_of
from waypost.domain.quiet_hours import Hours, clock_of
from waypost.domain.submission import NO_CONTROLS, NotificationType, TypeName
from waypost.domain.time import isoformat
from waypost.entrypoints.rest.views import Timestamp
from waypost.stores.sql.preferences import Said

_Clock = Annotated[
    str,
    Meta(
        max_length=5,
        pattern=r"^([01][0-9]|2[0-3]):[0-5][0-9](?!\n)$",
        description="A time of the clock, such as `22:00`.",
        examples=["22:00"],
    ),
]
_Zone = Annotated[str, Meta(min_length=1, max_length=64, pattern=NO_CONTROLS, examples=["Europe/Zurich"])]
_BACK: Final = "null is back to what the app says"


class HoursView(Struct, frozen=True, forbid_unknown_fields=True):
    """Hours of each day in the user's time zone, over midnight where `end` is the earlier; `start` alike: none."""

    start: _Clock
    end: _Clock


class TypePreferenceView(Struct, frozen=True):
    """A type of message, and whether the user wants it."""

    name: Annotated[str, Meta(description="The type, as submissions name it.")]
    title: Annotated[str, Meta(description="What users read.")]
    enabled: Annotated[bool, Meta(description="Whether the user wants it.")]
    critical: Annotated[bool, Meta(description="Whether it cannot be turned off.")]
    channels: Annotated[dict[str, bool], Meta(description="Whether the user wants it by each channel of the app.")]


class PreferencesView(Struct, frozen=True):
    """The preferences of a user as they count now; what is critical is sent all the same."""

    enabled: Annotated[bool, Meta(description="False turns everything off.")]
    channels: Annotated[dict[str, bool], Meta(description="False turns a whole channel off.")]
    types: Annotated[tuple[TypePreferenceView, ...], Meta(description="Each type that the app declares.")]
    quiet_hours: Annotated[HoursView | None, Meta(description="The user's, or the app's.")]
    frequency_limit: Annotated[int | None, Meta(description="The user's own limit of notifications a day.")]
    time_zone: Annotated[str, Meta(description="The user's time zone, or the app's where that is not known.")]
    changed_at: Annotated[Timestamp | None, Meta(description="When the user's own were changed last.")]


class SubmittedTypeChange(Struct, frozen=True, forbid_unknown_fields=True):
    """A change of the choice about one type; what is left out stays."""

    enabled: Annotated[bool | UnsetType | None, Meta(description=_BACK)] = UNSET
    channels: Annotated[dict[ChannelName, bool | None], Meta(max_length=32, description=_BACK)] = {}


class SubmittedPreferences(Struct, frozen=True, forbid_unknown_fields=True):
    """A change of preferences; what is left out stays."""

    enabled: Annotated[bool | UnsetType, Meta(description="False turns everything off.")] = UNSET
    channels: Annotated[dict[ChannelName, bool | None], Meta(max_length=32, description=_BACK)] = {}
    types: Annotated[dict[TypeName, SubmittedTypeChange | None], Meta(max_length=500, description=_BACK)] = {}
    quiet_hours: Annotated[HoursView | UnsetType | None, Meta(description=_BACK)] = UNSET
    frequency_limit: Annotated[Annotated[int, Meta(ge=1, le=CAP_LIMIT)] | UnsetType | None, Meta(description=_BACK)] = (
        UNSET
    )
    time_zone: Annotated[_Zone | UnsetType | None, Meta(description=_BACK)] = UNSET


def change_of(said: SubmittedPreferences) -> PreferenceChange:
    """Build the change that was asked for."""
    types = {
        name: None if each is None else TypeChange(enabled=each.enabled, channels=each.channels)
        for name, each in said.types.items()
    }
    hours = said.quiet_hours
    if isinstance(hours, HoursView):
        quiet: Hours | UnsetType | None = Hours.parse(f"{hours.start}-{hours.end}")
    else:
        quiet = hours
    return PreferenceChange(
        enabled=said.enabled,
        channels=said.channels,
        types=types,
        quiet_hours=quiet,
        frequency_limit=said.frequency_limit,
    )


def view_of(
    said: Said, app: AppSettings, channels: Iterable[str], time_zone: str | None, languages: Sequence[str] = ()
) -> PreferencesView:
    """Show what the user said, and what the app says where the user does not; titles in one of *languages*."""
    preferences, named = said.preferences, sorted(channels)
    hours = preferences.quiet_hours or app.preferences.quiet_hours
    return PreferencesView(
        enabled=preferences.enabled,
        channels={each: preferences.channels.get(each, True) for each in named},
        types=tuple(_type(str(name), preferences, app, named, languages) for name in app.types),
        quiet_hours=None if hours is None else HoursView(clock_of(hours.start), clock_of(hours.end)),
        frequency_limit=preferences.frequency_limit,
        time_zone=zone_of(time_zone, app.time_zone).key,
        changed_at=None if said.changed_at is None else isoformat(said.changed_at),
    )


def _type(
    name: str, preferences: Preferences, app: AppSettings, channels: Iterable[str], languages: Sequence[str]
) -> TypePreferenceView:
    settings = app.types[NotificationType(name)]
    choice = preferences.types.get(name, TypeChoice())
    of_type = Preferences(types=preferences.types)
    return TypePreferenceView(
        name,
        title_of(settings.titles, languages, name),
        settings.enabled if choice.enabled is None else choice.enabled,
        settings.critical,
        {each: settings.critical or wants(of_type, name, settings, each) for each in channels},
    )


def title_of(titles: Mapping[Language, str], languages: Sequence[str], name: str) -> str:
    """Return what a type is called, in the first of *languages* that it has a title in, in English, or by its name."""
    for each in (*languages, "en"):
        for wanted in (Language(each), Language(each.partition("-")[0])):
            if wanted in titles:
                return titles[wanted]
    return name
