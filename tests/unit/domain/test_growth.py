"""How a store grows, by its sizes."""

from __future__ import annotations

import pytest

from waypost.domain.growth import Forecast, Size, forecast

GB = 1_000_000_000


@pytest.mark.parametrize(
    ("sizes", "free", "told"),
    [
        ([], GB, Forecast(0, None, None)),
        ([Size(100, GB)], GB, Forecast(GB, None, None)),
        ([Size(100, GB), Size(110, 2 * GB)], 5 * GB, Forecast(2 * GB, GB // 10, 50.0)),
        ([Size(10, 0), Size(96, GB), Size(110, 2 * GB)], 7 * GB, Forecast(2 * GB, 71_428_571, 98.0)),
        ([Size(100, 2 * GB), Size(101, GB)], GB, Forecast(GB, -GB, None)),
        ([Size(100, GB), Size(101, GB)], GB, Forecast(GB, 0, None)),
        ([Size(100, GB), Size(101, 2 * GB)], None, Forecast(2 * GB, GB, None)),
    ],
)
def test_growth_is_of_two_weeks_and_a_disk_is_full_where_it_goes_on(
    sizes: list[Size], free: int | None, told: Forecast
) -> None:
    assert forecast(sizes, free) == told
