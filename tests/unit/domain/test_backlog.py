"""Who may add to a lane's backlog."""

from __future__ import annotations

import pytest

from waypost.domain.backlog import AppLag, Backlog, Full, of_largest
from waypost.domain.ids import AppId
from waypost.domain.notification import Lane
from waypost.domain.time import Instant

LIMIT = 1_200
ONE, OTHER = AppId("one"), AppId("other")


def flooded_by(apps: int) -> Backlog:
    """Each of *apps* adds one after the other until it is refused."""
    waiting: dict[tuple[Lane, AppId | None], int] = {(Lane.NORMAL, AppId(f"flood-{n}")): 0 for n in range(apps)}
    more = True
    while more:
        more = False
        for lane, app in waiting:
            if app and Backlog(LIMIT, is_shared=True, waiting=waiting).full(lane, app) is None:
                waiting[lane, app] += 1
                more = True
    return Backlog(LIMIT, is_shared=True, waiting=waiting)


@pytest.mark.parametrize("apps", [1, 2, 5])
def test_floods_leave_room_for_who_has_nothing_waiting(apps: int) -> None:
    """One gets half of the limit, two a third each, five a sixth; each is told that its own part is full."""
    backlog = flooded_by(apps)
    assert set(backlog.waiting.values()) == {LIMIT // (apps + 1)}
    assert backlog.full(Lane.NORMAL, ONE) is None
    assert backlog.full(Lane.NORMAL, AppId("flood-0")) is Full.APP


def test_a_lane_that_is_full_takes_nothing_of_anybody() -> None:
    """What has no known app counts; other lanes go on."""
    backlog = Backlog(10, is_shared=True, waiting={(Lane.NORMAL, ONE): 4, (Lane.NORMAL, None): 6})
    assert backlog.full(Lane.NORMAL, OTHER) is Full.LANE
    assert backlog.full(Lane.HIGH, ONE) is None


def test_the_only_app_may_fill_the_lane() -> None:
    """There is nobody to leave a share to."""
    assert Backlog(10, is_shared=False, waiting={(Lane.NORMAL, ONE): 9}).full(Lane.NORMAL, ONE) is None
    assert Backlog(10, is_shared=False, waiting={(Lane.NORMAL, ONE): 10}).full(Lane.NORMAL, ONE) is Full.LANE


@pytest.mark.parametrize("limit", [1, 2, 9, 10])
def test_nobody_is_refused_below_what_is_counted(limit: int) -> None:
    """A lane with fewer open may be left out of the count."""
    backlog = Backlog(limit, is_shared=True)
    fewer = backlog.counts_from - 1
    assert Backlog(limit, is_shared=True, waiting={(Lane.NORMAL, ONE): fewer}).full(Lane.NORMAL, ONE) is None


def test_the_largest_apps_of_each_lane_are_named_and_the_others_summed_up() -> None:
    lags: dict[tuple[Lane, AppId | None], AppLag]
    lags = {(Lane.NORMAL, AppId(f"app-{n}")): AppLag(n, Instant(1_000 - n)) for n in range(1, 6)}
    lags[Lane.HIGH, AppId("app-1")] = AppLag(7)
    assert of_largest(lags, 2) == {
        (Lane.NORMAL, AppId("app-5")): AppLag(5, Instant(995)),
        (Lane.NORMAL, AppId("app-4")): AppLag(4, Instant(996)),
        (Lane.NORMAL, None): AppLag(6, Instant(997)),
        (Lane.HIGH, AppId("app-1")): AppLag(7),
    }
