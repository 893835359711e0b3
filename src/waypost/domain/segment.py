"""Segments: which users a filter chooses, by their attributes, devices, topics and tracked events. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Final

from msgspec import Meta, Struct, field

from waypost.domain.device import Platform
from waypost.domain.errors import Fault
from waypost.domain.text import NO_NUL, Text

DEEPEST: Final = 12
"""The most filters inside of each other."""
MOST_PARTS: Final = 200
"""The most filters of a tree, all together."""
MOST_VALUES: Final = 500
LARGEST_NUMBER: Final = 2**53
"""The largest number that every JSON reader keeps exactly."""
MOST_DAYS: Final = 3_650

_Name = Annotated[str, Meta(min_length=1, max_length=64, pattern=r"^[A-Za-z_][A-Za-z0-9_.-]*(?!\n)$")]
_Value = Annotated[str, Meta(max_length=512, pattern=NO_NUL)]
_Number = (
    Annotated[int, Meta(ge=-LARGEST_NUMBER, le=LARGEST_NUMBER)]
    | Annotated[float, Meta(ge=-LARGEST_NUMBER, le=LARGEST_NUMBER)]
)
Scalar = _Value | _Number | bool
Bound = _Value | _Number
Days = Annotated[int, Meta(ge=1, le=MOST_DAYS)]
TopicName = Annotated[str, Meta(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9_.-]+(?!\n)$", examples=["news"])]
SegmentName = Annotated[
    str, Meta(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9_.-]+(?!\n)$", examples=["lapsed-premium"])
]
_Locale = Annotated[str, Meta(max_length=35, pattern=r"^[A-Za-z0-9_-]+(?!\n)$")]


class AttributeTest(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A test of one attribute: what is said must hold; without anything else, the user has the attribute.

    Who has no such attribute, or one of another type, does not pass.
    """

    name: Annotated[_Name, Meta(examples=["plan"])]
    is_: Annotated[Scalar | None, Meta(description="The value, or one of the texts where the attribute is a list.")] = (
        field(name="is", default=None)
    )
    in_: Annotated[
        Annotated[tuple[Scalar, ...], Meta(min_length=1, max_length=MOST_VALUES)] | None,
        Meta(description="One of these values."),
    ] = field(name="in", default=None)
    above: Annotated[Bound | None, Meta(description="Larger; texts by their characters, such as dates.")] = None
    at_least: Annotated[Bound | None, Meta(description="As large, or larger.")] = None
    below: Annotated[Bound | None, Meta(description="Smaller.")] = None
    at_most: Annotated[Bound | None, Meta(description="As large, or smaller.")] = None


class DeviceTest(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A test of devices: the user has an active one for which all that is given holds."""

    platforms: Annotated[
        tuple[
            Annotated[
                Platform,
                Meta(max_length=32, pattern=NO_NUL, extra_json_schema={"$ref": "#/components/schemas/Platform"}),
            ],
            ...,
        ],
        Meta(max_length=50),
    ] = ()
    app_versions: Annotated[tuple[Text, ...], Meta(max_length=50)] = ()
    locales: Annotated[
        tuple[_Locale, ...], Meta(max_length=50, description="A language alone includes its regions.")
    ] = ()
    seen_within_days: Annotated[Days | None, Meta(description="Registered or refreshed in so many days.")] = None


class EventTest(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A test of tracked events: the user had one of this name, or as many as are asked for."""

    name: Annotated[Text, Meta(description="Such as `opened`, or a name of the app's own.", examples=["opened"])]
    within_days: Annotated[
        Days | None,
        Meta(description="In the last so many times 24 hours; counts are kept by UTC day, so that one day is whole."),
    ] = None
    at_least: Annotated[int, Meta(ge=1, le=1_000_000, description="How many events.")] = 1


class Filter(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A filter of users: exactly one of these fields."""

    all_: Annotated[
        Annotated[tuple[Filter, ...], Meta(min_length=1)] | None, Meta(description="All of these hold.")
    ] = field(name="and", default=None)
    any_: Annotated[
        Annotated[tuple[Filter, ...], Meta(min_length=1)] | None, Meta(description="One of these holds.")
    ] = field(name="or", default=None)
    not_: Annotated[Filter | None, Meta(description="This does not hold.")] = field(name="not", default=None)
    attribute: Annotated[AttributeTest | None, Meta(description="An attribute is as this says.")] = None
    locale: Annotated[
        Annotated[tuple[_Locale, ...], Meta(min_length=1, max_length=50)] | None,
        Meta(description="The profile's language is one of these; a language alone includes its regions."),
    ] = None
    time_zone: Annotated[
        Annotated[tuple[Text, ...], Meta(min_length=1, max_length=MOST_VALUES)] | None,
        Meta(description="The profile's time zone is one of these."),
    ] = None
    device: Annotated[DeviceTest | None, Meta(description="The user has such a device.")] = None
    topic: Annotated[TopicName | None, Meta(description="The user hears this topic of yours.")] = None
    event: Annotated[EventTest | None, Meta(description="The user had such an event.")] = None


def filter_faults(chosen: Filter, at: str) -> list[Fault]:
    """List what is wrong with a filter beside its types, with the path of each from *at*."""
    faults = list(_faults(chosen, at, 1))
    if not faults and _size(chosen) > MOST_PARTS:
        return [Fault(at, f"has more than {MOST_PARTS} filters in it")]
    return faults


def is_in(chosen: Filter, name: str) -> bool:
    """Tell whether *name*, a field of Filter, is said anywhere in the tree."""
    return getattr(chosen, name) is not None or any(is_in(part, name) for part in parts_of(chosen))


def parts_of(chosen: Filter) -> tuple[Filter, ...]:
    """List the filters right inside of *chosen*."""
    return (*(chosen.all_ or ()), *(chosen.any_ or ()), *(() if chosen.not_ is None else (chosen.not_,)))


def _faults(chosen: Filter, at: str, depth: int) -> Iterator[Fault]:
    said = [name for name in Filter.__struct_fields__ if getattr(chosen, name) is not None]
    if len(said) != 1:
        yield Fault(at, f"must say exactly one of {', '.join(Filter.__struct_encode_fields__)}")
        return
    if depth > DEEPEST:
        yield Fault(at, f"more than {DEEPEST} filters inside of each other")
        return
    if chosen.attribute is not None:
        yield from _attribute_faults(chosen.attribute, f"{at}.attribute")
    for name, parts in (("and", chosen.all_), ("or", chosen.any_)):
        for n, part in enumerate(parts or ()):
            yield from _faults(part, f"{at}.{name}[{n}]", depth + 1)
    if chosen.not_ is not None:
        yield from _faults(chosen.not_, f"{at}.not", depth + 1)


def _attribute_faults(test: AttributeTest, at: str) -> Iterator[Fault]:
    bounds = [bound for bound in (test.above, test.at_least, test.below, test.at_most) if bound is not None]
    if test.is_ is not None and test.in_ is not None:
        yield Fault(at, "give is, or in")
    if any(isinstance(bound, str) != isinstance(bounds[0], str) for bound in bounds):
        yield Fault(at, "the bounds must all be numbers, or all be texts")


def _size(chosen: Filter) -> int:
    return 1 + sum(_size(part) for part in parts_of(chosen))
