"""Messages of streams as submissions: every form, and whatever else somebody may write there."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from waypost.domain.content import Urgency
from waypost.domain.errors import ErrorCode, InvalidRequest
from waypost.domain.submission import Submission
from waypost.entrypoints.streams.messages import MESSAGE_LIMIT_BYTES, read_message
from waypost.ports.source import Foreign

STREAM = "jobs"
DERIVED = "jobs\n17-0"
INVALID = ErrorCode.INVALID_REQUEST
HI = {"user_id": "ann", "title": "Hi"}


def message(said: Any = None, **fields: str | bytes) -> Foreign:
    """An entry with *fields*, and *said* as its payload: bytes as they are, everything else as JSON."""
    raw = {name.encode(): value if isinstance(value, bytes) else value.encode() for name, value in fields.items()}
    if said is not None:
        raw[b"payload"] = said if isinstance(said, bytes) else json.dumps(said).encode()
    return Foreign("17-0", raw)


def of_job(**fields: Any) -> Submission:
    """What becomes of a job."""
    return Submission(urgency=Urgency.HIGH, idempotency_key=DERIVED, **fields)


@pytest.mark.parametrize(
    ("written", "asked"),
    [
        (
            message({"user_id": "ann", "title": "Hi", "urgency": "low", "ttl": 5}),
            Submission(user_id="ann", title="Hi", urgency=Urgency.LOW, ttl=5, idempotency_key=DERIVED),
        ),
        (message({"user_id": "ann", "title": "Hi"}, trace="1"), Submission("ann", title="Hi", idempotency_key=DERIVED)),
        (
            message({"user_id": "ann", "title": "Hi", "data": {"userId": "bob"}}),
            Submission("ann", title="Hi", data={"userId": "bob"}, idempotency_key=DERIVED),
        ),
        (
            message({"userId": "ann", "title": "Hi", "channel": "orders", "badge": 3, "data": {"a": [1]}}),
            of_job(user_id="ann", title="Hi", android_channel="orders", badge=3, data={"a": [1], "channel": "orders"}),
        ),
        (message(userId="ann", title="Hi", order="17"), of_job(user_id="ann", title="Hi", data={"order": "17"})),
        (message(user_id="ann", body="Hi", data='{"a": 1}'), of_job(user_id="ann", body="Hi", data={"a": 1})),
    ],
)
def test_every_form_is_a_submission_with_a_key(written: Foreign, asked: Submission) -> None:
    assert read_message(written, STREAM) == asked


@pytest.mark.parametrize(
    ("written", "key"),
    [
        (message({"user_id": "ann", "title": "Hi", "idempotency_key": "mine"}), "mine"),
        (message(HI, idempotency_key="mine"), "mine"),
        (message({"user_id": "ann", "title": "Hi", "idempotency_key": "mine"}, idempotency_key="mine"), "mine"),
        (message({"userId": "ann", "title": "Hi"}, idempotency_key="mine"), "mine"),
        (message(userId="ann", title="Hi", idempotency_key="mine"), "mine"),
    ],
)
def test_a_producers_own_key_counts(written: Foreign, key: str) -> None:
    asked = read_message(written, STREAM)
    assert (asked.idempotency_key, asked.data) == (key, {})


def test_no_producer_can_say_the_key_that_is_derived_for_another_message() -> None:
    with pytest.raises(InvalidRequest):
        read_message(message(HI, idempotency_key=DERIVED), STREAM)


@pytest.mark.parametrize(
    ("written", "path", "code"),
    [
        (message(b""), "", ErrorCode.INVALID_JSON),
        (message(b"\xff\xfe"), "", ErrorCode.INVALID_JSON),
        (message(b'{"user_id": "ann", "title": "\xff"}'), "", ErrorCode.INVALID_JSON),
        (message(b"nope"), "", ErrorCode.INVALID_JSON),
        (message(b"[" * 100_000), "", INVALID),
        (message(b'{"data":' + b"[" * 100_000), "data", INVALID),
        (message(b'{"userId": {"a":' + b"[" * 100_000), "userId", INVALID),
        (message(b"null"), "", INVALID),
        (message([]), "", INVALID),
        (message({"user_id": 17, "title": "Hi"}), "user_id", INVALID),
        (message({"user_id": "ann", "titel": "Hi"}), "titel", INVALID),
        (message({"user_id": "ann\u0000", "title": "Hi"}), "user_id", INVALID),
        (message({"userId": "ann\n", "title": "Hi"}), "user_id", INVALID),
        (message({"userId": "ann", "title": "x" * 257}), "title", INVALID),
        (message({"userId": "ann", "data": 1}), "payload.data", INVALID),
        (message(userId="", title="Hi"), "userId", INVALID),
        (message(title="Hi"), "userId", INVALID),
        (message(), "userId", INVALID),
        (message(b" " * (MESSAGE_LIMIT_BYTES + 1)), "", ErrorCode.TOO_LARGE),
        (message(HI, idempotency_key="a b"), "idempotency_key", INVALID),
        (message(HI, idempotency_key=b"\xff"), "idempotency_key", INVALID),
        (message({"user_id": "a", "idempotency_key": "x"}, idempotency_key="y"), "idempotency_key", INVALID),
    ],
)  # fmt: skip
def test_what_cannot_be_read_names_the_field(written: Foreign, path: str, code: ErrorCode) -> None:
    with pytest.raises(InvalidRequest) as caught:
        read_message(written, STREAM)
    assert ([fault.path for fault in caught.value.faults], caught.value.code) == ([path], code)


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
names = st.sampled_from(["user_id", "userId", "to", "title", "body", "data", "badge", "channel", "idempotency_key"])


@given(st.dictionaries(st.binary(max_size=12), st.binary(max_size=40), max_size=4), st.binary(max_size=80))
def test_whatever_bytes_are_written_it_is_a_submission_or_an_invalid_request(
    fields: dict[bytes, bytes], payload: bytes
) -> None:
    for more in ({}, {b"payload": payload}, {b"userId": payload}, {b"idempotency_key": payload}):
        with contextlib.suppress(InvalidRequest):
            assert read_message(Foreign("1-0", {**fields, **more}), STREAM).idempotency_key


@given(st.dictionaries(names | st.text(max_size=6), anything, max_size=5))
def test_whatever_json_is_written_it_is_a_submission_or_an_invalid_request(said: dict[str, Any]) -> None:
    with contextlib.suppress(InvalidRequest):
        assert read_message(message(said), STREAM).idempotency_key
