"""Schedules: what is submitted again and again, and another time for what waits for its own."""

from waypost.features.feature import Feature
from waypost.features.schedules.settings import ScheduleSettings

SCHEDULES = Feature(
    name="schedules",
    docs="Something is submitted again and again at local times; what waits for its time gets another one.",
    parts="waypost.features.schedules.parts:PARTS",
    settings=ScheduleSettings,
    commands={
        "schedules": "waypost.cli.schedules:schedules",
        "cancel": "waypost.cli.rescheduling:cancel",
        "reschedule": "waypost.cli.rescheduling:reschedule",
    },
)
