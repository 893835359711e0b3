"""What is known of users: language, time zone and attributes."""

from waypost.features.feature import Feature

USERS = Feature(
    name="users",
    docs="A user has a language, a time zone, and attributes that the app gives.",
    parts="waypost.features.users.parts:PARTS",
)
