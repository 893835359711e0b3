"""The parts that measure how the store grows."""

from __future__ import annotations

import contextlib
import shutil

from waypost.domain.growth import Forecast
from waypost.features.parts import FeatureDuty, Ground, Parts
from waypost.runtime.roles import Role
from waypost.stores.sql.connection import database_path
from waypost.stores.sql.settings import is_postgres
from waypost.stores.sql.store_sizes import TABLE
from waypost.telemetry import Metric

EVERY_S = 600.0


async def forecast_of(ground: Ground) -> Forecast:
    """Tell how the store grows, and how long its disk lasts where it is one of this machine."""
    free = None
    if not is_postgres(ground.config.store.url):
        with contextlib.suppress(OSError):
            free = shutil.disk_usage(database_path(ground.config.store.url).parent).free
    return await ground.store.store_sizes.forecast(free)


async def measure(ground: Ground) -> None:
    """Note the size of the store, and tell what follows from it."""
    await ground.store.store_sizes.note(ground.clock.now())
    told = await forecast_of(ground)
    ground.telemetry.gauge(Metric.STORE_SIZE, told.size)
    if told.bytes_a_day is not None:
        ground.telemetry.gauge(Metric.STORE_GROWTH, told.bytes_a_day)


PARTS = Parts(tables=(TABLE,), duties=(FeatureDuty("growth", Role.SWEEP, EVERY_S, measure),))
