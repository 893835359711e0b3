"""Forgetting a user."""

from waypost.features.feature import Feature

ERASURE = Feature(
    name="erasure",
    docs="All that is known of a user is forgotten, on the order of an operator.",
    parts="waypost.features.erasure.parts:PARTS",
    commands={"users": "waypost.cli.users:users"},
)
