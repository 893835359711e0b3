"""Waits of tickers that end together: a process at rest wakes once for all of them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from waypost.runtime.ticker import TOGETHER_S, pause_s, together_s

BEGAN_S = (100.0, 100.07, 100.249, 100.25, 101.13)
HAIR_S = 0.003
LONG_S = (0.25, 0.26, 0.5, 1.0, 5.0)


@pytest.mark.parametrize("wanted_s", LONG_S)
@pytest.mark.parametrize("waits_s", [together_s, pause_s])
def test_waits_end_together_whenever_they_began(waits_s: Callable[[float, float], float], wanted_s: float) -> None:
    moments = [(began_s + waits_s(began_s, wanted_s)) / TOGETHER_S for began_s in BEGAN_S]
    apart = [moment - moments[0] for moment in moments]
    assert apart == pytest.approx([round(each) for each in apart])


@pytest.mark.parametrize("wanted_s", LONG_S)
def test_a_wait_is_about_as_long_as_it_is_wanted(wanted_s: float) -> None:
    """A wait for a time does not end late, and a pause not much too soon."""
    for began_s in BEGAN_S:
        assert wanted_s - TOGETHER_S < together_s(began_s, wanted_s) < wanted_s + HAIR_S
        assert wanted_s / 2 <= pause_s(began_s, wanted_s) < 1.5 * wanted_s


@pytest.mark.parametrize("off_s", [-0.001, 0.0, 0.001])
@pytest.mark.parametrize("waits_s", [together_s, pause_s])
def test_what_began_at_such_a_moment_waits_as_long_as_it_wanted(
    waits_s: Callable[[float, float], float], off_s: float
) -> None:
    """An event loop that is early by a little loses no turn."""
    moment_s = 100 + together_s(100, 1.0)
    for wanted_s in (0.25, 0.5, 1.0, 5.0):
        assert waits_s(moment_s + off_s, wanted_s) == pytest.approx(wanted_s - off_s)


def test_a_short_wait_is_as_long_as_it_is_wanted() -> None:
    """Work that goes on is not slowed down by what rests."""
    assert together_s(100.0, 0.05) == pause_s(100.0, 0.05) == 0.05
