"""Templates: what messages say, by channel and language, in versions."""

from waypost.features.feature import Feature

TEMPLATES = Feature(
    name="templates",
    docs="Messages are written once, by channel and language, and filled with variables when they are sent.",
    parts="waypost.features.templates.parts:PARTS",
    commands={"templates": "waypost.cli.templates:templates"},
)
