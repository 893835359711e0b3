"""How the store grows."""

from waypost.features.feature import Feature

GROWTH = Feature(
    name="growth",
    docs="The size of the store is noted each day: how fast it grows, and when its disk is full.",
    parts="waypost.features.growth.parts:PARTS",
)
