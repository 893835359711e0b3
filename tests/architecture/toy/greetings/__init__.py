"""A toy: users are greeted, and everything that a feature can bring is in it."""

from typing import Annotated

from msgspec import Meta, Struct

from waypost.features.feature import Feature


class GreetingsSettings(Struct, frozen=True, kw_only=True):
    """How users are greeted."""

    word: str = "hello"
    """What is said."""
    keep_ms: Annotated[int, Meta(ge=0)] = 86_400_000
    """Milliseconds after which a greeting is deleted."""


GREETINGS = Feature(
    name="greetings",
    docs="Users are greeted.",
    parts="greetings.parts:PARTS",
    settings=GreetingsSettings,
    commands={"greetings": "greetings.command:greetings"},
)
