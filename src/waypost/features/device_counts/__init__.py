"""The devices of a user, in numbers."""

from waypost.features.feature import Feature

DEVICE_COUNTS = Feature(
    name="device_counts",
    docs="How many devices users have is counted once in a while, for the metrics.",
    parts="waypost.features.device_counts.parts:PARTS",
)
