"""One notification to many recipients."""

from waypost.features.feature import Feature

BULK = Feature(
    name="bulk",
    docs="One notification is sent to a list of users, or to all of an app.",
    parts="waypost.features.bulk.parts:PARTS",
    commands={"bulk": "waypost.cli.bulk:bulk"},
)
