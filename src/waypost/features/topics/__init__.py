"""Topics of our own, which users hear on whatever channel they are reached by."""

from waypost.features.feature import Feature

TOPICS = Feature(
    name="topics",
    docs="Users subscribe to topics, and all who hear one are told.",
    parts="waypost.features.topics.parts:PARTS",
)
