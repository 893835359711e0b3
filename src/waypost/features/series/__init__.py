"""Series: steps over days that each member goes through, until the end or an event."""

from waypost.features.feature import Feature

SERIES = Feature(
    name="series",
    docs="Users go through steps over days, with conditions, until the end or an event.",
    parts="waypost.features.series.parts:PARTS",
    commands={"series": "waypost.cli.series:series"},
)
