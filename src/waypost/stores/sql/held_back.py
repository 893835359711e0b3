"""A watch on transactions kept open on the server, in any database, so that vacuum may delete nothing."""

from __future__ import annotations

from typing import Final

from waypost.stores.sql.database import Database
from waypost.stores.sql.driver import Row
from waypost.telemetry import Event, Metric

TOO_LONG_S: Final = 300
"""Seconds after which it is said whose it is."""

# What is prepared has no process; what others than this role (or pg_read_all_stats) may see has no times.
_OLDEST = """\
SELECT CAST(extract(epoch FROM clock_timestamp() - since) AS bigint) AS age_s, database, pid FROM (
    SELECT xact_start, CAST(datname AS text), pid FROM pg_stat_activity
    WHERE (backend_xid IS NOT NULL OR backend_xmin IS NOT NULL) AND backend_type = 'client backend'
    UNION ALL SELECT prepared, CAST(database AS text), NULL FROM pg_prepared_xacts
) AS open (since, database, pid) WHERE since IS NOT NULL ORDER BY since LIMIT 1
"""


class HeldBack:
    """A watch on the oldest open transaction: it tells its age always, and its owner once it is too old."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._told: tuple[str, int | None] | None = None

    async def look(self) -> None:
        """Look for the oldest transaction once."""
        row: Row | None = await self._database.read(lambda connection: connection.execute(_OLDEST).fetchone())
        age_s, database, pid = (0, "", None) if row is None else row
        self._database.telemetry.gauge(Metric.OLDEST_TRANSACTION, age_s)
        whose = (database, pid) if age_s >= TOO_LONG_S else None
        if whose is not None and whose != self._told:
            self._database.telemetry.event(Event.STORE_HELD_BACK, pid=pid, database=database, age_s=age_s)
        self._told = whose
