"""Segments: users whom a filter chooses, by name."""

from waypost.features.feature import Feature

SEGMENTS = Feature(
    name="segments",
    docs="A filter of users has a name, is counted before a send, and is whom a bulk send is for.",
    parts="waypost.features.segments.parts:PARTS",
    commands={"segments": "waypost.cli.segments:segments"},
)
