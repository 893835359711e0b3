"""The hour in which to send: of who is known well enough, by what its open rate is at least."""

from __future__ import annotations

import pytest

from waypost.domain.best_hour import BasedOn, BestHour, Hours, best_hour, summed


def hours(**by_hour: tuple[int, int]) -> Hours:
    """Hours with so many sent and opened, each named h and its number."""
    sent, opened = [0] * 24, [0] * 24
    for name, (of_sent, of_opened) in by_hour.items():
        sent[int(name[1:])], opened[int(name[1:])] = of_sent, of_opened
    return Hours(tuple(sent), tuple(opened))


USER, SEGMENT, APP = BasedOn.USER, BasedOn.SEGMENT, BasedOn.APP
MORNING = hours(h7=(100, 40), h20=(100, 20))
EVENING = hours(h7=(10, 1), h20=(10, 9))


def test_the_highest_rate_wins() -> None:
    assert best_hour([(APP, MORNING)]) == BestHour(7, APP, 0.4)


def test_one_of_one_is_not_better_than_nine_of_ten() -> None:
    assert best_hour([(USER, hours(h3=(1, 1), h20=(10, 9)))]) == BestHour(20, USER, 0.9)


def test_of_equal_rates_the_surer_one_and_then_the_earlier_one_wins() -> None:
    assert best_hour([(USER, hours(h3=(10, 5), h9=(20, 10)))]) == BestHour(9, USER, 0.5)
    assert best_hour([(USER, hours(h9=(10, 5), h3=(10, 5)))]) == BestHour(3, USER, 0.5)


@pytest.mark.parametrize(
    ("opened", "based_on"), [(5, USER), (4, SEGMENT)], ids=["the user's own", "too little of the user is known"]
)
def test_who_is_known_well_enough_decides(opened: int, based_on: BasedOn) -> None:
    known = [(USER, hours(h12=(9, opened))), (SEGMENT, EVENING), (APP, MORNING)]
    found = best_hour(known)
    assert found is not None
    assert (found.based_on, found.hour) == (based_on, {USER: 12, SEGMENT: 20}[based_on])


def test_the_app_decides_last_and_then_nobody() -> None:
    assert best_hour([(USER, Hours()), (SEGMENT, Hours()), (APP, MORNING)]) == BestHour(7, APP, 0.4)
    assert best_hour([(USER, Hours()), (APP, hours(h7=(900, 4)))]) is None


@pytest.mark.parametrize(("shift", "hour"), [(0, 20), (3, 23), (4, 0), (9, 5), (-5 % 24, 15)])
def test_the_hour_is_that_of_the_zone(shift: int, hour: int) -> None:
    assert best_hour([(APP, EVENING)], shift) == BestHour(hour, APP, 0.9)


def test_hours_add_up() -> None:
    both = summed([MORNING, EVENING])
    assert (both.sent[7], both.opened[20]) == (110, 29)
