"""The shapes of users in the API."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType

from waypost.domain.profile import ATTRIBUTES_LIMIT
from waypost.domain.submission import NO_CONTROLS, Locale
from waypost.domain.text import NO_NUL

AttributeName = Annotated[str, Meta(max_length=64, pattern=r"^[A-Za-z_][A-Za-z0-9_.-]*(?!\n)$", examples=["plan"])]
_Text = Annotated[str, Meta(max_length=512, pattern=NO_NUL)]
AttributeValue = _Text | int | float | bool | Annotated[tuple[_Text, ...], Meta(max_length=100)]
TimeZone = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=64,
        pattern=NO_CONTROLS,
        description="The name of a time zone in the IANA database.",
        examples=["Europe/Zurich"],
    ),
]
Attributes = Annotated[
    dict[AttributeName, AttributeValue],
    Meta(
        max_length=ATTRIBUTES_LIMIT,
        description="What the app says of the user: texts, numbers, yes or no, and lists of texts.",
        examples=[{"plan": "premium", "age": 34, "interests": ["tennis"]}],
    ),
]
ChangedAttributes = Annotated[
    dict[AttributeName, AttributeValue | None],
    Meta(max_length=ATTRIBUTES_LIMIT, description="The attributes to set; null removes one."),
]


class SubmittedProfile(Struct, frozen=True, forbid_unknown_fields=True):
    """A user's profile as a whole."""

    locale: Locale | None = None
    time_zone: TimeZone | None = None
    attributes: Attributes = {}


class SubmittedChange(Struct, frozen=True, forbid_unknown_fields=True):
    """Fields of a profile to change; what is left out stays."""

    locale: Locale | UnsetType | None = UNSET
    time_zone: TimeZone | UnsetType | None = UNSET
    attributes: ChangedAttributes = {}


class ProfileView(Struct, frozen=True):
    """A user's profile."""

    user_id: str
    locale: str | None
    time_zone: Annotated[str | None, Meta(description="The time zone, as the IANA database names it.")]
    attributes: Attributes
