"""The marks of readers on their notifications."""

from waypost.features.feature import Feature

MARKS = Feature(
    name="marks",
    docs="A reader marks a notification as read, as unread, or hides it.",
    parts="waypost.features.marks.parts:PARTS",
)
