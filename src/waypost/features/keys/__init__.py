"""API keys: who may call."""

from waypost.features.feature import Feature

KEYS = Feature(
    name="keys",
    docs="API keys are made, rotated, listed and revoked.",
    parts="waypost.features.keys.parts:PARTS",
    commands={"keys": "waypost.cli.keys:keys"},
)
