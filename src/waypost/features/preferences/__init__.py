"""Preferences: which types of message a user wants, by which channel, at which hours, and how many."""

from waypost.features.feature import Feature
from waypost.features.preferences.settings import PreferenceSecret

PREFERENCES = Feature(
    name="preferences",
    docs="Users say what they want to be sent, by which channel, when, and how much of it.",
    parts="waypost.features.preferences.parts:PARTS",
    settings=PreferenceSecret,
)
