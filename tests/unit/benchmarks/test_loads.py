"""The loads of the benches: shapes that Waypost takes, users in no order, duplicates that can be counted."""

from __future__ import annotations

import itertools
import json
from collections import Counter

import msgspec
import pytest

from waypost.bench import shapes
from waypost.bench.gateway import ReceivedCount
from waypost.bench.load import LoadPlan
from waypost.domain.submission import Submission, faults

USERS, COUNT = 20_000, 10_000


def notifications(count: int) -> list[dict[str, object]]:
    """What the load generator says in a request of so many."""
    plan = LoadPlan("127.0.0.1:1", "key", {"batch": str(count), "users": str(USERS)} | shapes.wishes())
    request = plan._request(0, count)
    said: list[dict[str, object]] = json.loads(request.partition(b"\r\n\r\n")[2])["notifications"]
    return said


@pytest.mark.parametrize("shape", sorted(set(shapes.SHAPES)))
def test_every_shape_is_taken(shape: str) -> None:
    """One that is refused would be answered, counted by nobody, and make the others look cheap."""
    said = f'{{"user_id":"user-1",{shape}}}'.replace("{n}", "7")
    assert faults(msgspec.json.decode(said, type=Submission)) == []


def test_users_come_in_no_order_and_all_alike() -> None:
    """Neither one after the other nor some more than others."""
    seen = [str(each["user_id"]) for each in notifications(COUNT)]
    neighbours = sum(
        abs(int(a.removeprefix("user-")) - int(b.removeprefix("user-"))) <= 1 for a, b in itertools.pairwise(seen)
    )
    assert neighbours < COUNT / 1_000
    assert max(Counter(seen).values()) < 10
    assert len(set(seen)) > USERS * 0.35


def test_shapes_and_lanes_are_mixed() -> None:
    """Each shape as often as it stands in the list, less what is kept for what is said twice."""
    said = notifications(COUNT)
    of = {
        "critical": sum(each.get("urgency") == "critical" for each in said),
        "silent": sum(each.get("kind") == "silent" for each in said),
        "no data": sum("data" not in each for each in said),
    }
    for name, share in {"critical": 0.05, "silent": 0.05, "no data": 0.15}.items():
        assert of[name] / COUNT == pytest.approx(share, rel=0.15), name


def test_duplicates_are_known_by_their_key_and_counted() -> None:
    """What is said twice is the same in every field, and has a key; nothing else is the same."""
    said = [json.dumps(each, sort_keys=True) for each in notifications(COUNT)]
    twice = [text for text, times in Counter(said).items() if times > 1]
    assert len(set(said)) == shapes.distinct(COUNT)
    assert len(twice) == COUNT // shapes.BLOCK
    assert all("idempotency_key" in text for text in twice)


def test_each_answer_of_the_gateway_has_a_head_of_its_own() -> None:
    """A client that keeps heads in mind must not be helped."""
    received = ReceivedCount()
    for path in (b"/3/device/abcd", b"/push/abcd"):
        name, status, _ = received.take(path, b'{"body":"No. 5 was left"}')
        assert received.head(name, status) != received.head(name, status)
    first, second = (received.take(b"/v1/projects/p/messages:send", b'{"token":"t"}') for _ in range(2))
    assert first[2] != second[2]
    assert [mark for mark, _ in received.marks] == [5, 5]
