"""Problem bodies, cursors and faults: pure parts of the REST API."""

from __future__ import annotations

import contextlib
from typing import Literal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from waypost.domain.bulk_submission import BulkMessage
from waypost.domain.content import Kind
from waypost.domain.errors import (
    ErrorCode,
    Fault,
    InvalidRequest,
    NotFound,
    StorageBroken,
    StorageFull,
    Unavailable,
    WaypostError,
)
from waypost.domain.ids import NotificationId
from waypost.domain.submission import Submission
from waypost.entrypoints.decoding import decode
from waypost.entrypoints.rest import cursors
from waypost.entrypoints.rest.problems import STATUS_OF, RequestRefused, headers_of, problem_of
from waypost.entrypoints.wording import fault_of
from waypost.features.schedules.rescheduling import NewTime


def test_every_code_has_its_status() -> None:
    """None is left out, and none is no error."""
    assert set(STATUS_OF) == set(ErrorCode)
    assert all(400 <= status <= 599 for status in STATUS_OF.values())


@pytest.mark.parametrize(
    ("error", "status", "retry_after"),
    [
        (InvalidRequest((Fault("title", "needed"),)), 400, None),
        (NotFound("no such notification"), 404, None),
        (WaypostError("still open", ErrorCode.NOT_REPLAYABLE), 409, None),
        (Unavailable("full", ErrorCode.BACKLOG_FULL, 5), 429, 5),
        (StorageFull("full"), 503, 1),
        (StorageBroken("corrupt"), 503, 1),
        (RequestRefused(ErrorCode.UNAUTHENTICATED, "no key"), 401, None),
    ],
)
def test_an_error_becomes_a_problem(error: WaypostError, status: int, retry_after: int | None) -> None:
    """Code, status and what to do."""
    problem = problem_of(error)
    assert (problem.status, problem.code, problem.retry_after) == (status, error.code, retry_after)
    assert (("retry-after", str(retry_after)) in headers_of(error, problem)) == (retry_after is not None)


MOMENT = 'must be a time with its zone (RFC 3339), such as "2026-12-01T09:00:00Z"'
TIMES = 'must be YYYY-MM-DDTHH:MM, such as "2026-12-01T09:00", or `best`, or `best HH:MM-HH:MM`,'


@pytest.mark.parametrize(
    ("kind", "body", "path", "why"),
    [
        (Submission, {"user_id": "ann", "send_at": "best 9-21"}, "send_at", f'{TIMES} such as "best 09:00-21:00"'),
        (Submission, {"send_at": "2026-12-01T09:00:00Z"}, "send_at", f'{TIMES} such as "best 09:00-21:00"'),
        (Submission, {"scheduled_at": "tomorrow"}, "scheduled_at", MOMENT),
        (Submission, {"scheduled_at": "2026-12-01T09:00:00"}, "scheduled_at", MOMENT),
        (Submission, {"user_id": "a" * 129}, "user_id", "must be a string of length <= 128"),
        (BulkMessage, {"send_at": "tomorrow"}, "send_at", f'{TIMES} such as "best 09:00-21:00"'),
        (NewTime, {"send_at": "best 9"}, "send_at", 'must be YYYY-MM-DDTHH:MM, such as "2026-12-01T09:00"'),
        (Submission, {"user_id": "a\0"}, "user_id", "must have no control characters"),
        (Submission, {"locale": "de CH"}, "locale", 'is not of the form that is wanted, such as "de-CH"'),
        (Submission, {"tags": ["a", "\n"]}, "tags[1]", "must have no control characters"),
    ],
)
def test_the_form_of_a_text_is_said_in_words(kind: type, body: dict[str, object], path: str, why: str) -> None:
    """Not as the regular expression that it is checked by."""
    with pytest.raises(InvalidRequest) as caught:
        decode(msgspec.json.Decoder(kind), msgspec.json.encode(body))
    assert caught.value.faults == (Fault(path, why),)


@pytest.mark.parametrize("body", [b"", b'{"user_id": "ann"'])
def test_a_body_that_is_cut_off_is_told_so(body: bytes) -> None:
    """An empty one too."""
    with pytest.raises(InvalidRequest) as caught:
        decode(msgspec.json.Decoder(Submission), body)
    assert caught.value.code is ErrorCode.INVALID_JSON
    assert caught.value.faults == (Fault("", "empty, or JSON that ends too early"),)


def test_what_was_not_foreseen_says_nothing() -> None:
    """Its text may hold anything."""
    assert "hush" not in msgspec.json.encode(problem_of(ValueError("hush"))).decode()


def test_a_problem_is_short_however_long_what_was_sent() -> None:
    """A path or a reason may hold the name of an unknown field."""
    problem = problem_of(InvalidRequest((Fault("x" * 100_000, "y" * 100_000),)))
    assert len(msgspec.json.encode(problem)) < 2_000


@given(st.binary(min_size=16, max_size=16), st.integers(0, 2**31 - 1))
def test_a_cursor_reads_back_as_what_it_was_made_from(raw: bytes, n: int) -> None:
    """Of a notification, or of a target of one."""
    notification_id = NotificationId(raw)
    assert cursors.notification(cursors.of_notification(notification_id)) == notification_id
    assert cursors.target(cursors.of_target(notification_id, n)) == (notification_id, n)


@given(st.text(max_size=21) | st.text(min_size=28, max_size=40))
def test_any_other_text_is_not_a_cursor(text: str) -> None:
    """RequestRefused with its own code; never another exception."""
    for read in (cursors.notification, cursors.target):
        with pytest.raises(InvalidRequest) as caught:
            read(text)
        assert caught.value.code is ErrorCode.INVALID_CURSOR


class _Inner(msgspec.Struct, forbid_unknown_fields=True):
    number: int


class _Outer(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    items: list[_Inner] = []
    kinds: dict[str, Kind] = {}
    size: Literal[2, 3] | None = None
    flag: bool | None = None


@pytest.mark.parametrize(
    ("body", "path", "why"),
    [
        (b"{}", "name", "required"),
        (b'{"name": 1}', "name", "must be a string, not a whole number"),
        (b'{"name": "a", "items": [{"number": 1}, {}]}', "items[1].number", "required"),
        (b'{"name": "a", "items": [{"number": "x"}]}', "items[0].number", "must be a whole number, not a string"),
        (b'{"name": "a", "items": [{"number": 1, "b": 2}]}', "items[0].b", "unknown field"),
        (b'{"name": "a", "other": 1}', "other", "unknown field"),
        (b'{"name": "a", "item": []}', "item", "unknown field; did you mean items?"),
        (
            b'{"name": "a", "items": [{"number": 1, "numbr": 2}]}',
            "items[0].numbr",
            "unknown field; did you mean number?",
        ),
        (
            b'{"name": "a", "items": [{"number": 1.5}]}',
            "items[0].number",
            "must be a whole number, not a number with a fraction",
        ),
        (
            b'{"name": "a", "kinds": {"x": "visibel"}}',
            "kinds[...]",
            "not one of visible, silent; did you mean visible?",
        ),
        (b'{"name": "a", "kinds": {"x": "\\u0000"}}', "kinds[...]", "not one of visible, silent"),
        (b'{"name": "a", "size": 1}', "size", "not one of 2, 3"),
        (b'{"name": "a", "flag": 1}', "flag", "must be true or false or null, not a whole number"),
        (b"[]", "", "must be an object, not an array"),
    ],
)
def test_a_fault_names_the_field(body: bytes, path: str, why: str) -> None:
    """By its path as a caller would write it, with a prefix where the body is a part of another."""
    with pytest.raises(msgspec.ValidationError) as caught:
        msgspec.json.decode(body, type=_Outer)
    assert fault_of(caught.value, _Outer) == Fault(path, why)
    assert fault_of(caught.value, _Outer, "batch[3]").path == (f"batch[3].{path}" if path else "batch[3]")


@given(st.binary(max_size=200))
def test_any_bytes_are_a_body_or_an_invalid_request(body: bytes) -> None:
    """Whatever they are: no other exception."""
    with contextlib.suppress(InvalidRequest):
        assert isinstance(decode(msgspec.json.Decoder(_Outer), body), _Outer)
