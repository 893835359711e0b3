"""Jobs as producers of the notifications service write them, and what is wrong with those that cannot be read."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.shows import shows
from waypost.domain.errors import ErrorCode, InvalidRequest
from waypost.domain.job import JOB_LIMIT_BYTES, Job, is_payload, read_job

WHOLE = Job("ann", "orders", "Packed", "On its way", 3, {"order": "17", "parts": [1, {"deep": True}]})


def flat(**fields: str) -> dict[bytes, bytes]:
    """An entry whose fields are the job's own."""
    return {name.encode(): value.encode() for name, value in fields.items()}


def payload(job: Any) -> dict[bytes, bytes]:
    """An entry that holds *job* as JSON."""
    return {b"payload": (job if isinstance(job, str) else json.dumps(job)).encode()}


FORMS = {
    "flat, data as text": flat(
        userId="ann",
        channel="orders",
        title="Packed",
        body="On its way",
        badge="3",
        data='{"order": "17", "parts": [1, {"deep": true}]}',
    ),
    "flat, some data as a field": flat(
        userId="ann",
        channel="orders",
        title="Packed",
        body="On its way",
        badge="3",
        order="17",
        data='{"parts": [1, {"deep": true}]}',
    ),
    "JSON": payload(
        {
            "userId": "ann",
            "channel": "orders",
            "title": "Packed",
            "body": "On its way",
            "badge": 3,
            "data": {"order": "17", "parts": [1, {"deep": True}]},
        }
    ),
    "JSON, some data beside": payload(
        {
            "user_id": "ann",
            "channel": "orders",
            "title": "Packed",
            "body": "On its way",
            "badge": "3",
            "order": "17",
            "data": '{"parts": [1, {"deep": true}]}',
        }
    ),
}


@shows("S0-02", "S0-03")
@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_the_same_job(form: str) -> None:
    """Requirements S0-02 and S0-03."""
    assert read_job(FORMS[form]) == WHOLE


@pytest.mark.parametrize(
    ("fields", "job"),
    [
        (flat(userId="ann"), Job("ann")),
        (flat(userId="ann", channel="", badge="", data="", title="", paid=""), Job("ann", title="", data={"paid": ""})),
        (payload({"userId": "ann", "channel": None, "badge": None, "data": None}), Job("ann")),
        (payload({"userId": "ann", "channel": "", "badge": "", "data": "", "title": ""}), Job("ann", title="")),
        (payload({"userId": 17, "title": 4}), Job("17", title="4")),
        (flat(userId="ann", badge="0"), Job("ann", badge=0)),
        (flat(userId="ann", payload="kept"), Job("ann", data={"payload": "kept"})),
        (flat(userId="ann", order="17", data='{"order": "18"}'), Job("ann", data={"order": "18"})),
        (payload({"userId": "ann", "paid": None}), Job("ann", data={"paid": None})),
        (flat(userId="<b>'; DROP TABLE x; --", title="\u202e"), Job("<b>'; DROP TABLE x; --", title="\u202e")),
        ({**payload({"userId": "ann"}), b"trace": b"1"}, Job("ann")),
    ],
)
def test_what_is_left_out_or_odd(fields: dict[bytes, bytes], job: Job) -> None:
    assert read_job(fields) == job


@pytest.mark.parametrize(
    ("fields", "path", "code"),
    [
        ({}, "userId", ErrorCode.INVALID_REQUEST),
        (flat(title="Hi"), "userId", ErrorCode.INVALID_REQUEST),
        (flat(userId=""), "userId", ErrorCode.INVALID_REQUEST),
        (flat(userId="a\x00b"), "userId", ErrorCode.INVALID_REQUEST),
        (flat(userId="ann", badge="many"), "badge", ErrorCode.INVALID_REQUEST),
        (flat(userId="ann", badge="-1"), "badge", ErrorCode.INVALID_REQUEST),
        (flat(userId="ann", badge="²"), "badge", ErrorCode.INVALID_REQUEST),
        (flat(userId="ann", badge="9" * 5000), "badge", ErrorCode.INVALID_REQUEST),
        (flat(userId="ann", data="[1]"), "data", ErrorCode.INVALID_REQUEST),
        (flat(userId="ann", data="{"), "data", ErrorCode.INVALID_JSON),
        ({b"userId": b"ann", b"title": b"\xff"}, "", ErrorCode.INVALID_REQUEST),
        ({b"userId": b"ann", b"\xff": b"title"}, "", ErrorCode.INVALID_REQUEST),
        ({b"payload": b"\xff"}, "payload", ErrorCode.INVALID_JSON),
        (payload("[" * 20_000), "payload", ErrorCode.INVALID_JSON),
        (payload("not JSON"), "payload", ErrorCode.INVALID_JSON),
        (payload([]), "payload", ErrorCode.INVALID_REQUEST),
        (payload({"title": "Hi"}), "payload.userId", ErrorCode.INVALID_REQUEST),
        (payload({"userId": ["ann"]}), "payload.userId", ErrorCode.INVALID_REQUEST),
        (payload({"userId": True}), "payload.userId", ErrorCode.INVALID_REQUEST),
        (payload({"userId": "ann", "title": {}}), "payload.title", ErrorCode.INVALID_REQUEST),
        (payload({"userId": "ann", "badge": True}), "payload.badge", ErrorCode.INVALID_REQUEST),
        (payload({"userId": "ann", "badge": 1.5}), "payload.badge", ErrorCode.INVALID_REQUEST),
        (payload({"userId": "ann", "data": 1}), "payload.data", ErrorCode.INVALID_REQUEST),
        (flat(userId="ann", body="x" * JOB_LIMIT_BYTES), "", ErrorCode.TOO_LARGE),
    ],
)
def test_what_cannot_be_read_names_the_field(fields: dict[bytes, bytes], path: str, code: ErrorCode) -> None:
    with pytest.raises(InvalidRequest) as caught:
        read_job(fields)
    assert ([fault.path for fault in caught.value.faults], caught.value.code) == ([path], code)


def test_an_error_does_not_say_what_the_entry_held() -> None:
    for fields in (flat(userId="ann", badge="secret"), payload('{"userId": "ann", "title": secret}')):
        with pytest.raises(InvalidRequest) as caught:
            read_job(fields)
        assert "secret" not in str(caught.value)


def test_a_payload_is_json_unless_a_user_stands_beside_it() -> None:
    assert is_payload(payload({"userId": "ann"}))
    assert not is_payload(flat(userId="ann", payload="{}"))
    assert not is_payload(flat(title="Hi"))


@given(st.dictionaries(st.binary(max_size=20), st.binary(max_size=200), max_size=8))
def test_whatever_the_bytes_it_is_a_job_or_an_invalid_request(fields: dict[bytes, bytes]) -> None:
    for each in (fields, {b"payload": fields.get(b"", b"{}")}, {b"userId": b"ann", **fields}):
        with contextlib.suppress(InvalidRequest):
            assert read_job(each).user_id
