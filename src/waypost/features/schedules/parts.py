"""The parts that schedules add to a worker."""

from __future__ import annotations

from waypost.features.parts import Parts
from waypost.features.schedules.rescheduling import reschedule

PARTS = Parts(routes=(reschedule,))
