"""How far a partition is settled: what is committed, and what its next owner makes of it."""

from __future__ import annotations

import random

import pytest

from waypost.stores.kafka.progress import SPAN, PartitionProgress


def received(*offsets: int, at: int = 0) -> PartitionProgress:
    """A partition of which these offsets were received."""
    progress = PartitionProgress(at, None)
    for offset in offsets:
        assert progress.receive(offset)
    return progress


def next_owner(progress: PartitionProgress, settling: set[int], end: int) -> list[int]:
    """What the next owner works on after the commit, up to *end*."""
    successor = PartitionProgress(*progress.commit(settling))
    return [offset for offset in range(successor.position, end) if successor.receive(offset)]


@pytest.mark.parametrize(
    ("settled", "watermark", "again"),
    [
        ((), 0, [0, 1, 2, 3]),
        ((0,), 1, [1, 2, 3]),
        ((0, 1, 2, 3), 4, []),
        ((1, 3), 0, [0, 2]),
        ((0, 2), 1, [1, 3]),
    ],
)
def test_the_lowest_unsettled_offset_is_committed(settled: tuple[int, ...], watermark: int, again: list[int]) -> None:
    """What is settled beyond it is known to the next owner, whether it was noted before or with this commit."""
    progress = received(0, 1, 2, 3)
    for offset in settled:
        progress.settle(offset)
    assert progress.commit(set())[0] == watermark
    assert next_owner(progress, set(), 4) == again
    assert next_owner(received(0, 1, 2, 3), set(settled), 4) == again


def test_offsets_without_a_message_count_as_settled() -> None:
    progress = received(0, 5)
    progress.settle(0)
    progress.reach(9)
    assert progress.watermark == 5
    assert next_owner(progress, set(), 12) == [5, 9, 10, 11]


def test_what_is_settled_before_it_is_received_is_not_worked_on() -> None:
    progress = received(0, 1)
    progress.settle(7)
    assert next_owner(progress, set(), 9) == [0, 1, 2, 3, 4, 5, 6, 8]
    assert [offset for offset in range(2, 9) if progress.receive(offset)] == [2, 3, 4, 5, 6, 8]


def test_an_unreadable_note_delivers_again_rather_than_not() -> None:
    for metadata in (None, "", "somebody else's", "1:%%%", "2:AAAA"):
        assert PartitionProgress(3, metadata).receive(3)


def test_the_widest_note_fits_into_4096_characters() -> None:
    progress = received(*range(SPAN))
    for offset in range(1, SPAN, 2):
        progress.settle(offset)
    assert progress.span == SPAN
    watermark, metadata = progress.commit(set())
    assert watermark == 0
    assert len(metadata) <= 4_096


def test_no_owner_ever_loses_or_repeats_an_offset() -> None:
    """Owners come and go at random, some messages replaced by later ones: each is settled exactly once."""
    for seed in range(50):
        chance = random.Random(seed)
        todo = list(range(60))
        done: list[int] = []
        watermark, metadata = 0, None
        while len(done) < len(todo):
            progress = PartitionProgress(watermark, metadata)
            end = chance.randint(progress.position, len(todo))
            held = [offset for offset in range(progress.position, end) if progress.receive(offset)]
            settling = set(chance.sample(held, chance.randint(0, len(held))))
            watermark, metadata = progress.commit(settling)
            done += settling
        assert sorted(done) == todo
