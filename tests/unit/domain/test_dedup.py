"""Dedup keys: the same thing said twice has the same key, and nothing else has."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.shows import shows
from waypost.domain.content import Content
from waypost.domain.dedup import (
    KEY_BYTES,
    body_hash,
    content_hash,
    content_key,
    idempotency_key,
    placed_key,
    shown,
)
from waypost.domain.ids import AppId, CallerId, UserId

text = st.text(max_size=8)
json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=8,
)
data = st.dictionaries(text, json_values, max_size=4)


def _backwards(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _backwards(value[key]) for key in reversed(value)}
    return [_backwards(one) for one in value] if isinstance(value, list) else value


@shows("S1-78")
@given(data)
def test_the_order_of_datas_keys_does_not_matter_at_any_depth(original: dict[str, Any]) -> None:
    """Requirements S1-78."""
    assert content_hash(Content("t", body="b", data=original)) == content_hash(
        Content("t", body="b", data=_backwards(original))
    )


@given(data)
def test_a_trip_through_json_does_not_matter(original: dict[str, Any]) -> None:
    assert content_hash(Content(data=original)) == content_hash(Content(data=json.loads(json.dumps(original))))


@given(st.tuples(text, text, data), st.tuples(text, text, data))
def test_other_content_has_another_hash(one: tuple[str, str, Any], other: tuple[str, str, Any]) -> None:
    first = content_hash(Content(one[0], body=one[1], data=one[2]))
    second = content_hash(Content(other[0], body=other[1], data=other[2]))
    assert (first == second) == (json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True))


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ('{"n": 1}', '{"n":1}', True),
        ('{"a": 1, "b": 2}', '{"b": 2, "a": 1}', True),
        ('{"n": 1.0}', '{"n": 1.00}', True),
        ('{"n": 1e2}', '{"n": 100.0}', True),
        ('{"n": 1}', '{"n": 1.0}', False),
        ('{"n": 1}', '{"n": "1"}', False),
        ('{"n": 1}', '{"n": true}', False),
        ('{"n": 0}', '{"n": false}', False),
        ('{"n": null}', "{}", False),
        ('{"n": [1, 2]}', '{"n": [2, 1]}', False),
        ('{"n": "caf\u00e9"}', '{"n": "caf\\u00e9"}', True),
        ('{"n": "caf\u00e9"}', '{"n": "cafe\u0301"}', False),
        ('{"n": "a"}', '{"n": "A"}', False),
        ('{"n": "a"}', '{"n": "a "}', False),
    ],
)
def test_what_is_the_same_is_what_json_says_is_the_same(one: str, other: str, same: bool) -> None:
    """Spaces, escapes, order and digits do not count. What a device would get differently does: text is not normalised
    (é is not e and an accent), and a whole number is not a fraction."""
    hashes = {content_hash(Content("t", data=msgspec.json.decode(each))) for each in (one, other)}
    assert (len(hashes) == 1) is same


@shows("S1-25")
@given(st.text(min_size=2, max_size=12), st.data())
def test_one_text_cut_in_two_ways_gives_two_keys(whole: str, data: st.DataObject) -> None:
    """Lengths are part of what is hashed, so names of apps, callers, users and keys never run into each other."""
    cuts = st.tuples(st.integers(0, len(whole)), st.integers(0, len(whole))).map(sorted).map(tuple)
    one, other = data.draw(cuts), data.draw(cuts)
    parts = [(whole[:i], whole[i:j], whole[j:]) for i, j in (one, other)]
    by_content = {content_key(AppId(a), CallerId(b), UserId(c), Content("t")) for a, b, c in parts}
    by_own_key = {idempotency_key(AppId(a), CallerId(b), c) for a, b, c in parts}
    assert len(by_content) == len(by_own_key) == len({one, other})
    assert by_content.isdisjoint(by_own_key)


@given(st.text(max_size=8), st.text(max_size=8))
def test_each_app_and_each_caller_says_its_own(one: str, other: str) -> None:
    said = Content("t")
    keys = {
        content_key(AppId(one), CallerId(other), UserId("u"), said),
        content_key(AppId(other), CallerId(one), UserId("u"), said),
    }
    assert (len(keys) == 1) is (one == other)


def test_nothing_and_the_empty_text_differ() -> None:
    assert content_hash(Content(title=None)) != content_hash(Content(title=""))


def test_only_title_body_and_data_count() -> None:
    assert content_hash(Content("t", body="b", sound="x", badge=3)) == content_hash(Content("t", body="b"))


@given(st.lists(text, min_size=3, max_size=3), st.lists(text, min_size=3, max_size=3))
def test_no_text_can_pass_for_a_separator(one: list[str], other: list[str]) -> None:
    said = Content("t")
    keys = [content_key(AppId(app), CallerId(caller), UserId(user), said) for app, caller, user in (one, other)]
    assert (keys[0] == keys[1]) == (one == other)


def test_names_that_run_together_differ() -> None:
    said = Content("t")
    joined = {
        content_key(AppId(app), CallerId(caller), UserId(user), said)
        for app, caller, user in [("a", "b", "cd"), ("a", "bc", "d"), ("ab", "c", "d"), ("a\0b", "c", "d")]
    }
    assert len(joined) == 4


def test_a_title_does_not_run_into_the_body() -> None:
    assert content_hash(Content("ab", body="c")) != content_hash(Content("a", body="bc"))


def test_each_caller_has_idempotency_keys_of_its_own() -> None:
    """Also a content key never equals an idempotency key."""
    app, caller = AppId("demo"), CallerId("orders")
    keys = {
        idempotency_key(app, caller, "k"),
        idempotency_key(app, CallerId("billing"), "k"),
        idempotency_key(AppId("other"), caller, "k"),
        content_key(app, caller, UserId("k"), Content()),
    }
    assert len(keys) == 4
    assert {len(key) for key in keys} == {KEY_BYTES}


@pytest.mark.parametrize(
    "places",
    [
        ["1700000000000-0", "1700000000000-1", "1700000000001-0", "99999999999999-7"],
        ["3:17:1700000000000", "0:5:1700000000001", "3:18:1700000000002"],
    ],
)
def test_keys_of_places_sort_by_time_and_each_place_and_stream_has_its_own(places: list[str]) -> None:
    """Those of one moment stand together, so that a batch of a stream touches few pages of an index."""
    of = {
        (stream, place): idempotency_key(AppId("app"), CallerId("caller"), placed_key(stream, place))
        for stream in ("one", "other")
        for place in places
    }
    assert len(set(of.values())) == len(of)
    assert all(len(key) == KEY_BYTES for key in of.values())
    keys = [of["one", place] for place in places]
    assert [key[:8] for key in keys] == sorted(key[:8] for key in keys)
    assert {key[:2] for key in keys} == {keys[0][:2]}


@pytest.mark.parametrize("place", ["", "0:5:-1", "x", "99999999999999999999-1", "\u00b2-1", "1\n2"])
def test_a_place_without_a_time_has_a_key_all_the_same(place: str) -> None:
    """By its hash, as any other."""
    keys = {idempotency_key(AppId("app"), CallerId("caller"), placed_key(stream, place)) for stream in ("one", "other")}
    assert len(keys) == 2
    assert {len(key) for key in keys} == {KEY_BYTES}


@shows("S1-78")
def test_a_hash_is_shown_by_its_first_16_hex_characters() -> None:
    """Requirements S1-78."""
    digest = content_hash(Content("t"))
    assert shown(digest) == digest.hex()[:16]


@given(json_values, json_values)
def test_the_body_hash_tells_requests_apart(one: Any, other: Any) -> None:
    same = json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
    assert (body_hash(one) == body_hash(other)) == same
