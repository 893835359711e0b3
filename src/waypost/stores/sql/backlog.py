"""The backlog by lane and app: all that is open by the counters, less what is scheduled.

The counters have a row for each app, lane, hour and status: all are read, so this is for a reader's thread. Of what is
scheduled each row is counted in its index, but only of lanes that may be full.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from waypost.domain.backlog import AppLag, Lags, Waiting
from waypost.domain.ids import AppId
from waypost.domain.notification import Lane
from waypost.domain.time import Instant
from waypost.stores.sql.driver import Connection

_OPEN = "SELECT lane, app, CAST(sum(delta) AS BIGINT) FROM counter WHERE status = 'pending' GROUP BY lane, app"
_SCHEDULED = (
    "SELECT app, count(*) FROM notification INDEXED BY notification_due_of_app"
    " WHERE lane = ? AND due_at > 0 AND due_at > ? GROUP BY app"
)


def lags(connection: Connection, oldest: Mapping[tuple[Lane, AppId], Instant]) -> Lags:
    """See Work.lag; *oldest* is known."""
    open_in = {(Lane(lane), AppId(app)): n for lane, app, n in connection.execute(_OPEN).fetchall() if n > 0}
    return {key: AppLag(open_in.get(key, 0), oldest.get(key)) for key in (*open_in, *(oldest.keys() - open_in.keys()))}


def backlog(connection: Connection, now: Instant, counts_from: int) -> Waiting:
    """See Work."""
    open_in: Counter[tuple[Lane, AppId | None]] = Counter()
    by_lane: Counter[Lane] = Counter()
    for name, app, n in connection.execute(_OPEN).fetchall():
        open_in[Lane(name), AppId(app)] = n
        by_lane[Lane(name)] += n
    long = [lane for lane, n in by_lane.items() if n >= counts_from]
    for lane in long:
        for app, n in connection.execute(_SCHEDULED, (lane, now)).fetchall():
            open_in[lane, AppId(app)] -= n
    return {(lane, app): n for (lane, app), n in open_in.items() if n > 0 and lane in long}
