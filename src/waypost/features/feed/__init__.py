"""The feed in the app."""

from waypost.entrypoints.live.settings import FeedSettings
from waypost.features.feature import Feature

FEED = Feature(
    name="feed",
    docs="A user finds notifications in the app: what is new, read, archived or deleted, with counts.",
    parts="waypost.features.feed.parts:PARTS",
    settings=FeedSettings,
    commands={"feed": "waypost.cli.feed:feed", "tail": "waypost.cli.feed:tail"},
)
