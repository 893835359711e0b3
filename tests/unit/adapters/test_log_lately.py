"""What the log's workers remember of withdrawals is bounded by time."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from waypost.stores.kafka.lately import Lately

KEEP_MS = 100


@given(st.lists(st.integers(0, 80), max_size=50))
def test_each_is_remembered_as_long_as_it_must_be_and_at_most_twice_that(steps: list[int]) -> None:
    """And as long again at most as passes between two notes."""
    lately: Lately[int] = Lately(KEEP_MS)
    now, noted = 0, dict[int, int]()
    for key, step in enumerate(steps):
        now += step
        lately.note(key, f"because of {key}", now)
        noted[key] = now
        for each, at in noted.items():
            if now - at < KEEP_MS:
                assert lately.get(each) == f"because of {each}"
            elif now - at >= 2 * KEEP_MS + 80:
                assert each not in lately
    assert len(lately) <= len(noted)


def test_the_newest_text_of_a_key_counts() -> None:
    lately: Lately[str] = Lately(KEEP_MS)
    lately.note("a", "first", 0)
    lately.note("b", "other", KEEP_MS)
    assert lately.get("a") == "first"
    lately.note("a", "second", KEEP_MS)
    assert lately.get("a") == "second"
    assert lately.get("c") is None
