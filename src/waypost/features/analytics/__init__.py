"""Analytics: what became of what was sent, and what users did."""

from waypost.features.analytics.settings import AnalyticsSettings
from waypost.features.feature import Feature

ANALYTICS = Feature(
    name="analytics",
    docs="What is sent, delivered, opened and acted on is counted, and so are the app's own events.",
    parts="waypost.features.analytics.parts:PARTS",
    settings=AnalyticsSettings,
    commands={"analytics": "waypost.cli.analytics:analytics"},
)
