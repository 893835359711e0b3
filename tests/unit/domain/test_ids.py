"""Ids: UUIDv7s of one process that never go back, and stable hashes."""

from __future__ import annotations

import uuid
from contextlib import suppress
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from waypost.domain.ids import (
    SHARDS,
    AppId,
    NotificationId,
    UserId,
    created_at,
    format_id,
    next_ids,
    parse_id,
    shard_of,
    token_hash,
)
from waypost.domain.time import Instant

instants = st.integers(0, 2**47).map(Instant)
noise = st.binary(min_size=10, max_size=16)
ALL_ONES = b"\xff" * 10


@given(st.lists(st.tuples(instants, st.integers(0, 5), noise), max_size=12))
def test_ids_never_go_back_whatever_the_clock_does(calls: list[tuple[Instant, int, bytes]]) -> None:
    made: list[NotificationId] = []
    floor = 0
    for now, count, randomness in calls:
        ids, floor = next_ids(now, count, randomness, floor)
        assert len(ids) == count
        made += ids
    assert all(before < after for before, after in pairwise(made))


@given(instants, noise)
def test_an_id_is_a_uuid_of_version_7_that_knows_its_time(now: Instant, randomness: bytes) -> None:
    (made,), _ = next_ids(now, 1, randomness, 0)
    parsed = uuid.UUID(bytes=made)
    assert (parsed.version, parsed.variant) == (7, uuid.RFC_4122)
    assert created_at(made) == now


@pytest.mark.parametrize("start", [(1 << 62) - 2, (1 << 62) - 1])
@pytest.mark.parametrize("high", [0, 0xFFE, 0xFFF])
def test_a_carry_keeps_version_and_variant(start: int, high: int) -> None:
    """The random part may overflow into its upper half, and that into the time."""
    now = Instant(1_800_000_000_000)
    floor = (now << 80) | (0x7 << 76) | high << 64 | (0b10 << 62) | start
    ids, last = next_ids(now, 4, bytes(10), floor)
    assert all(uuid.UUID(bytes=one).version == 7 for one in ids)
    assert all(uuid.UUID(bytes=one).variant == uuid.RFC_4122 for one in ids)
    assert all(int.from_bytes(one, "big") > floor for one in ids)
    assert ids == sorted(set(ids))
    assert last == int.from_bytes(ids[-1], "big")


def test_a_later_call_of_the_same_millisecond_goes_on() -> None:
    now = Instant(1_800_000_000_000)
    (first,), floor = next_ids(now, 1, ALL_ONES, 0)
    (second,), _ = next_ids(now, 1, bytes(10), floor)
    assert first < second
    assert created_at(second) == now


@given(st.binary(min_size=16, max_size=16).map(NotificationId))
def test_the_text_of_an_id_reads_back(made: NotificationId) -> None:
    text = format_id(made)
    assert text == str(uuid.UUID(bytes=made))
    assert parse_id(text) == parse_id(text.upper()) == made


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x",
        "018f0000-0000-7000-8000-00000000000",
        "{018f0000-0000-7000-8000-000000000000}",
        "urn:uuid:018f0000-0000-7000-8000-000000000000",
        "018f0000000070008000000000000000",
        " 018f0000-0000-7000-8000-000000000000",
        "018f0000-0000-7000-8000-00000000000g",
    ],
)
def test_any_other_text_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        parse_id(text)


@given(st.text())
def test_reading_an_id_never_fails_otherwise(text: str) -> None:
    with suppress(ValueError):
        assert format_id(parse_id(text)) == text.lower()


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"])))
def test_a_user_always_has_the_same_shard(user: str) -> None:
    shard = shard_of(AppId("demo"), UserId(user))
    assert 0 <= shard < SHARDS
    assert shard == shard_of(AppId("demo"), UserId(user))


def test_shards_are_evenly_filled_and_never_move() -> None:
    counts = [0] * SHARDS
    for n in range(64_000):
        counts[shard_of(AppId("demo"), UserId(f"user-{n}"))] += 1
    assert min(counts) > 800
    assert max(counts) < 1200
    assert [shard_of(AppId("demo"), UserId(name)) for name in ("ann", "bob")] == [
        shard_of(AppId("demo"), UserId("ann")),
        shard_of(AppId("demo"), UserId("bob")),
    ]


def test_a_token_hash_is_16_bytes_and_not_the_token() -> None:
    assert len(token_hash("secret")) == 16
    assert token_hash("secret") != token_hash("Secret")
