"""A worker's duty of schedules on a store: what it submits goes by the ordinary door."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from tests.contract.bench import APP, CALLER, Bench
from waypost.config import AppSettings, Config
from waypost.domain.backlog import Backlog
from waypost.domain.ids import UserId
from waypost.domain.local_time import choose_zone
from waypost.domain.notification import Notification
from waypost.domain.recurrence import Recurrence
from waypost.domain.schedule import Schedule, awaiting
from waypost.domain.submission import Defaults
from waypost.features.parts import Door, Ground
from waypost.features.schedules.settings import ScheduleSettings
from waypost.pipeline.bulk_intake import BulkIntake
from waypost.pipeline.direct import DirectDevices
from waypost.pipeline.intake import Intake
from waypost.pipeline.template_choice import StoredTemplates
from waypost.ports.views import HistoryQuery
from waypost.runtime.clock import RandomIds

ZURICH = "Europe/Zurich"


def ground_on(bench: Bench, time_zone: str | None = ZURICH, settings: Any = None) -> Ground:
    """What the duties of a worker work with, its door open."""
    store: Any = bench.store
    bare: Ground = store.ground_of(bench.worker)
    on, ids = bare.store, RandomIds(bench.clock)
    defaults = {APP: Defaults()}
    intake = Intake(
        bench.worker,
        on.dedup,
        bench.clock,
        ids,
        bare.telemetry,
        defaults,
        DirectDevices(on.devices, {APP: {}}),
        StoredTemplates(on.templates),
        backlog=lambda: Backlog(1_000_000, is_shared=False),
    )
    door = Door()
    door.open(intake, BulkIntake(on.bulk, on.bulk_views, bench.clock, ids, on.templates, defaults))
    config = Config(apps={APP: AppSettings(time_zone=time_zone)})
    return replace(bare, config=config, settings=settings or ScheduleSettings(), door=door)


def weekly(bench: Bench, name: str = "weekly", user: str | None = "ann", **fields: Any) -> Schedule:
    """A schedule of each Monday at nine, with *fields* of its own, that awaits its first time."""
    said: dict[str, Any] = {
        "app": APP,
        "name": name,
        "caller": CALLER,
        "recurrence": Recurrence("2027-03-15T09:00", "FREQ=WEEKLY;BYDAY=MO"),
        "zone": None,
        "user_id": None if user is None else UserId(user),
        "notification": f'{{"user_id": "{user}", "title": "A new week"}}'.encode(),
        "created_at": bench.now,
    }
    made = Schedule(**(said | fields))
    return awaiting(made, choose_zone(made.zone or ZURICH, None), bench.now)


async def submitted(bench: Bench) -> list[Notification]:
    """What was submitted, oldest first."""
    found = await bench.store.views.history(HistoryQuery(APP, limit=100))
    return [each.notification for each in reversed(found)]
