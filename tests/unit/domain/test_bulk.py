"""Bulk jobs, the pure part: pages and pieces, ids, placeholders, and what a submission may hold."""

from __future__ import annotations

import itertools
import uuid
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.shows import shows
from waypost.domain.bulk import JobId, PageRow, cut_page, notification_for, piece_of, recipient_id, variables_for
from waypost.domain.bulk_submission import BulkSubmission, draft_job, recipient_of
from waypost.domain.content import Content
from waypost.domain.errors import InvalidRequest
from waypost.domain.ids import AppId, CallerId, NotificationId, UserId, created_at, first_id_at
from waypost.domain.personal import names_in, personalised
from waypost.domain.submission import Defaults
from waypost.domain.template import ChannelTexts, TemplateContent, Variable, VariableType, Version
from waypost.domain.time import Instant, from_datetime, isoformat

NOW = Instant(1_800_000_000_000)
ID = first_id_at(NOW)
JOB = JobId(ID)

rows = st.lists(st.tuples(st.booleans(), st.booleans()), max_size=60).map(
    lambda flags: [PageRow(f"u{n:03}", matches, out, 1) for n, (matches, out) in enumerate(flags)]
)


@shows("S2-03", "S2-04")
@given(page=rows, most=st.integers(1, 80), size=st.integers(1, 9))
def test_a_page_is_cut_into_pieces(page: list[PageRow], most: int, size: int) -> None:
    """Ranges that do not overlap, none too large, every wanted user up to the end in exactly one."""
    pieces, left_out, until = cut_page(page, "", most, size)
    wanted = [row.user_id for row in page if row.matches and not row.opted_out]
    passed = [row for row in page if row.user_id <= until]
    reached = [user for user in wanted if user <= until]
    assert reached == wanted[:most]
    assert left_out == sum(row.matches and row.opted_out for row in passed)
    assert [piece.expected for piece in pieces if piece.expected > size] == []
    for user in reached:
        assert sum(piece.after < user <= piece.until for piece in pieces) == 1
    assert sum(piece.expected for piece in pieces) == len(reached)
    assert all(one.until <= other.after for one, other in itertools.pairwise(pieces))
    if len(wanted) < most:
        assert until == (page[-1].user_id if page else "")


@given(piece=st.integers(0, (1 << 22) - 1), user=st.text(min_size=1, max_size=128))
def test_a_recipients_id_is_a_uuid_of_the_jobs_millisecond_that_names_its_piece(piece: int, user: str) -> None:
    made = recipient_id(JOB, piece, UserId(user))
    read = uuid.UUID(bytes=bytes(made))
    assert (read.version, read.variant) == (7, uuid.RFC_4122)
    assert (created_at(made), piece_of(made)) == (NOW, piece)
    assert made == recipient_id(JOB, piece, UserId(user))
    assert made != recipient_id(JobId(JOB[:-1] + b"\x01"), piece, UserId(user))


def test_ids_of_a_piece_lie_together() -> None:
    ids = [recipient_id(JOB, piece, UserId(str(n))) for piece in (0, 1, 1023, 1024, 5000) for n in range(20)]
    assert [piece_of(one) for one in sorted(ids)] == [piece_of(one) for one in ids]
    assert len(set(ids)) == len(ids)


def test_every_text_is_filled_in_once_and_nothing_else_changes() -> None:
    said = Content(
        title="Hi {{ name }}",
        body="{{name}} {{city}}",
        link="https://x/{{id}}",
        data={"a": ["{{id}}", {"b": "{{id}}"}], "n": 1},
    )
    filled = personalised(said, {"name": "{{city}}", "city": "Bern", "id": "7"})
    assert (filled.title, filled.body, filled.link) == ("Hi {{city}}", "{{city}} Bern", "https://x/7")
    assert filled.data == {"a": ["7", {"b": "7"}], "n": 1}
    assert names_in(said) == {"name", "city", "id"}


def test_a_recipients_variables_are_those_of_the_template() -> None:
    """Those of the job stand in for them, and those that are the same for all are under both."""
    declared = {"name": Variable(required=True), "city": Variable(), "order": Variable(type=VariableType.OBJECT)}
    version = Version("hi", 3, TemplateContent(channels={"default": ChannelTexts(title="x")}, variables=declared))
    said = {"template": {"name": "hi"}, "variables": {"order": {"n": 1}}, "locale": "pl", "link": "https://x/{{id}}"}
    asked = msgspec.convert({"notification": said, "upload": True, "variables": {"city": "Bern"}}, BulkSubmission)
    job = draft_job(asked, NotificationId(ID), AppId("demo"), CallerId("me"), Defaults(), NOW, version=version)
    with pytest.raises(InvalidRequest, match=r"^at\.id: missing.*; at\.name: missing"):
        recipient_of("ann", job, "at")
    told = recipient_of({"user_id": "ann", "name": "Ann", "id": 7, "age": 9}, job, "at")
    made = notification_for(job, 0, told.user_id, variables_for(job, told.variables, told.user_id))
    use = made.content.template
    assert use is not None and (use.name, use.version, use.locale) == ("hi", 3, "pl")
    assert use.variables == {"order": {"n": 1}, "city": "Bern", "name": "Ann", "id": "7"}
    assert made.content.link == "https://x/7"


def _drafted(**fields: Any) -> Any:
    asked = msgspec.convert({"notification": {"title": "Hi {{name}}"}} | fields, BulkSubmission)
    return draft_job(asked, NotificationId(ID), AppId("demo"), CallerId("me"), Defaults(), NOW)


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "no audience": ({}, ""),
    "two audiences": ({"upload": True, "registry": {}, "variables": {"name": 1}}, ""),
    "the registry without a default": ({"registry": {}}, "variables.name"),
    "a name that is none": ({"upload": True, "variables": {"a b": "x"}}, "variables.a b"),
    "a value too long": ({"upload": True, "variables": {"name": "x" * 1025}}, "variables.name"),
    "half a placeholder": ({"upload": True, "notification": {"title": "Hi {{name"}}, "notification.title"),
    "a placeholder that is none": (
        {"upload": True, "notification": {"title": "x", "data": {"a": ["{{1+1}}"]}}},
        "notification.data.a[0]",
    ),
    "nothing to show": ({"upload": True, "notification": {}}, "notification.title"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_makes_no_sense_is_refused_by_name(name: str) -> None:
    fields, path = WRONG[name]
    with pytest.raises(InvalidRequest) as refused:
        _drafted(**fields)
    assert path in [fault.path for fault in refused.value.faults]


def test_the_registry_is_told_the_same_with_the_defaults_filled_in() -> None:
    made = _drafted(registry={}, variables={"name": True})
    assert (made.content.title, made.names) == ("Hi true", ())


def test_with_a_local_time_it_ends_where_that_comes_last() -> None:
    local = "2030-01-01T09:00"
    message = {"title": "Hi", "send_at": local, "ttl": 60}
    made = draft_job(
        msgspec.convert({"notification": message, "registry": {}}, BulkSubmission),
        NotificationId(ID),
        AppId("demo"),
        CallerId("me"),
        Defaults(),
        from_datetime(datetime(2029, 12, 31, tzinfo=UTC)),
        zone="Europe/Zurich",
    )
    assert (made.send_at, made.zone) == (local, "Europe/Zurich")
    assert isoformat(made.expires_at) == "2030-01-01T21:01:00.000Z"


RECIPIENTS = {
    "an id alone": ("ann", {}, {"name": "x"}),
    "a variable": ({"user_id": "ann", "name": 7}, {"name": "7"}, {}),
    "an empty one is the default's": ({"user_id": "ann", "name": ""}, {}, {"name": "x"}),
    "what is not asked for is dropped": ({"user_id": "ann", "name": "A", "more": "m"}, {"name": "A"}, {}),
}


@pytest.mark.parametrize("name", RECIPIENTS)
def test_a_recipient_is_read(name: str) -> None:
    given_, expected, defaults = RECIPIENTS[name]
    made = _drafted(upload=True, variables=defaults)
    read = recipient_of(given_, made, "line 3")  # type: ignore[arg-type]  # a table of both kinds
    assert (read.user_id, read.variables) == ("ann", expected)


@pytest.mark.parametrize(
    ("given_", "path"),
    [
        ({"name": "x"}, "line 3.user_id"),
        ({"user_id": "a\nb", "name": "x"}, "line 3.user_id"),
        ({"user_id": 7, "name": "x"}, "line 3.user_id"),
        ("ann", "line 3.name"),
        ({"user_id": "ann", "name": "x" * 2000}, "line 3.name"),
    ],
)
def test_a_recipient_that_cannot_be_is_named_by_its_line(given_: Any, path: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        recipient_of(given_, _drafted(upload=True), "line 3")
    assert [fault.path for fault in refused.value.faults] == [path]
