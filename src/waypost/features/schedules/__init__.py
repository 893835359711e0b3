"""Schedules: what waits for its time gets another one."""

from waypost.features.feature import Feature

SCHEDULES = Feature(
    name="schedules",
    docs="What is to be sent later is sent at another time.",
    parts="waypost.features.schedules.parts:PARTS",
    commands={
        "cancel": "waypost.cli.rescheduling:cancel",
        "reschedule": "waypost.cli.rescheduling:reschedule",
    },
)
