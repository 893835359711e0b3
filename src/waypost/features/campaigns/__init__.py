"""Campaigns: one message to many, approved, forecast, begun slowly, compared."""

from waypost.features.feature import Feature

CAMPAIGNS = Feature(
    name="campaigns",
    docs="One message to many is drafted, approved, forecast and begun slowly; variants of it are compared.",
    parts="waypost.features.campaigns.parts:PARTS",
    commands={"campaigns": "waypost.cli.campaigns:campaigns"},
)
