"""The callbacks of providers: what they post of what became of a message."""

from waypost.features.feature import Feature

CALLBACKS = Feature(
    name="callbacks",
    docs="A provider reports what became of a message that it took.",
    parts="waypost.features.callbacks.parts:PARTS",
)
