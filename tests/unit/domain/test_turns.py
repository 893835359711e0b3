"""Places are shared out in turns: each queue its share, then again those that have more."""

from __future__ import annotations

from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from waypost.domain.turns import in_turns


def test_the_short_queue_has_its_share_and_leaves_the_rest_to_the_long_one() -> None:
    assert in_turns(6, ["aaaaaaaa", "b", "cc"]) == ["a", "a", "b", "c", "c", "a"]


def test_no_more_is_read_of_a_queue_than_is_taken() -> None:
    read: list[int] = []

    def queue() -> Iterator[int]:
        for n in range(10):
            read.append(n)
            yield n

    assert in_turns(3, [queue(), queue()]) == [0, 0, 1]
    assert read == [0, 0, 1]


@given(n=st.integers(0, 40), lengths=st.lists(st.integers(0, 20), max_size=8))
def test_every_place_is_given_and_nobody_has_less_than_an_equal_share_or_all_that_it_wants(
    n: int, lengths: list[int]
) -> None:
    taken = in_turns(n, [[name] * length for name, length in enumerate(lengths)])
    assert len(taken) == min(n, sum(lengths))
    for name, length in enumerate(lengths):
        assert taken.count(name) >= min(length, n // len(lengths))
