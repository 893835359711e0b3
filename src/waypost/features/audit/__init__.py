"""The record of who ordered what."""

from waypost.features.feature import Feature

AUDIT = Feature(
    name="audit",
    docs="Administrative orders are put on record before they are carried out, and can be listed.",
    parts="waypost.features.audit.parts:PARTS",
    commands={"audit": "waypost.cli.audit:audit"},
)
