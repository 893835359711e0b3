"""What is plain is drafted by a shorter way: the same draft, to the last field, or none."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.domain.test_submission_properties import ID, NOW, json_values, words
from waypost.bootstrap.registry import installed
from waypost.bootstrap.senders import content_checks
from waypost.config import AppSettings
from waypost.domain.channel_steps import SubmittedStep
from waypost.domain.drafting import ContentCheck, Draft, draft
from waypost.domain.errors import InvalidRequest
from waypost.domain.ids import AppId, CallerId
from waypost.domain.plain import SPECIAL, checks_of, draft_plain
from waypost.domain.submission import ContentSubmission, Defaults, NotificationType, Submission, TypedDefaults

APP, CALLER = AppId("demo"), CallerId("billing")
CHECKS = content_checks(AppSettings(senders={plugin.channel: None for plugin in installed()}), installed())
FEW = content_checks(AppSettings(senders={"fcm": None}), installed())
AT = datetime.fromtimestamp(NOW / 1000, UTC)

texts = st.text(max_size=12)
links = st.sampled_from(["https://example.com/a", "app://x"])
plain: dict[str, st.SearchStrategy[Any]] = {
    "title": texts,
    "subtitle": texts,
    "body": texts,
    "data": st.dictionaries(words | st.sampled_from(["aps", "from", "waypost_id", "gcm.x"]), json_values, max_size=3),
    "image": links,
    "icon": links,
    "link": links,
    "sound": words,
    "badge": st.integers(0, 9),
    "category": words,
    "thread": words,
    "android_channel": words,
    "collapse_key": words,
    "ttl": st.sampled_from([0, 1, 60, 28 * 86_400]),
    "scheduled_at": st.sampled_from([timedelta(0), timedelta(seconds=-5), timedelta(days=1), timedelta(days=400)]).map(
        lambda ahead: (AT + ahead).isoformat()
    ),
    "idempotency_key": st.sampled_from(["a", "order-1"]),
    "dedup_window": st.sampled_from([0, 5, 86_400]),
    "guarantee": st.sampled_from(["at_least_once", "at_most_once"]),
    "urgency": st.sampled_from(["critical", "high", "normal", "low"]),
    "type": st.sampled_from(["otp", "promotion", "order"]),
    "tags": st.lists(st.sampled_from(["a", "b", "c"]), max_size=4),
    "campaign": st.sampled_from(["spring"]),
}
special: dict[str, Any] = {
    "to": {"channel": "fcm", "kind": "topic", "name": "news"},
    "device": {"platform": "ios", "token": "a" * 64},
    "device_ids": ["d-1"],
    "kind": "silent",
    "actions": [{"id": "a", "title": "b"}],
    "send_at": "2027-02-01T09:00",
    "overrides": {"apns": {"aps": {"badge": 1}}},
    "push_type": "voip",
    "retry_policy": "s1_exponential",
    "channels": ["push"],
    "webhook_url": "https://example.com/hook",
    "variants": [{"name": "short", "title": "t"}],
    "holdout": 10,
    "template": {"name": "hello"},
    "variables": {"a": "b"},
    "locale": "de",
}
bodies = st.fixed_dictionaries({}, optional={"user_id": words, **plain}) | st.builds(
    lambda body, more: body | more,
    st.fixed_dictionaries({}, optional={"user_id": words, **plain}),
    st.sampled_from([{name: value} for name, value in special.items()]),
)
windows = st.none() | st.sampled_from([0, 60, 86_400])
defaults = st.builds(
    TypedDefaults,
    ttl_s=st.sampled_from([0, 3600]),
    dedup_window_s=windows,
    dedup_windows_s=st.sampled_from([{}, {"order": 10}]),
    channels=st.sampled_from([(), ("push",), (SubmittedStep("push", wait="30s"), "inapp"), ("nothing",)]),
    channels_by_type=st.sampled_from([{}, {"order": ("inapp", "push")}]),
    ttls_s=st.sampled_from([{}, {"otp": 30}]),
) | st.builds(Defaults, dedup_window_s=windows)


def read(body: dict[str, Any], kind: type[Submission]) -> Submission | None:
    """As the API reads it."""
    try:
        return msgspec.convert(body, kind)
    except msgspec.ValidationError:
        return None


def drafted(submission: Submission, own: Defaults, checks: Sequence[ContentCheck] = CHECKS) -> Draft | InvalidRequest:
    """By the general way."""
    try:
        return draft(submission, ID, APP, CALLER, own, NOW, checks)
    except InvalidRequest as refused:
        return refused


@given(bodies, defaults, st.sampled_from([Submission, ContentSubmission]), st.sampled_from([CHECKS, FEW]))
def test_the_shorter_way_drafts_the_same_or_leaves_it(
    body: dict[str, Any], own: Defaults, kind: type, checks: Sequence[ContentCheck]
) -> None:
    """Over every field there is, with the checks of real channels."""
    submission = read(body, kind)
    if submission is None:
        return
    (made,) = draft_plain([submission], [ID], APP, CALLER, own, NOW, checks_of(checks))
    by_the_general_way = drafted(submission, own, checks)
    if made is not None:
        assert made == by_the_general_way
    elif isinstance(by_the_general_way, Draft):
        assert body.keys() & special.keys(), "what is well and plain is drafted by the shorter way"


@pytest.mark.parametrize("name", special)
def test_what_is_special_is_left_alone(name: str) -> None:
    """Each field by itself; a submission of which this file says nothing would be drafted without it."""
    body = {"user_id": "ann", "title": "Hello", name: special[name]}
    submission = read(body, Submission)
    assert submission is not None
    assert draft_plain([submission], [ID], APP, CALLER, Defaults(), NOW, checks_of(CHECKS)) == [None]


def test_every_field_of_a_submission_is_plain_or_special() -> None:
    """A new one has to be put into one of the lists, or it would be lost on the shorter way."""
    assert set(special) == set(SPECIAL)
    assert {"user_id", *plain} | set(special) == set(Submission.__struct_fields__)


def test_what_is_too_large_is_left_to_be_refused() -> None:
    submission = Submission(user_id="ann", title="Hello", body="x" * 70_000)
    assert draft_plain([submission], [ID], APP, CALLER, Defaults(), NOW, checks_of(CHECKS)) == [None]


def test_a_check_of_what_is_special_is_asked_where_the_app_itself_names_channels() -> None:
    """The app's own channels come into content that says nothing of them."""
    own = Defaults(channels=("nothing",))
    submission = Submission(user_id="ann", title="Hello")
    assert draft_plain([submission], [ID], APP, CALLER, own, NOW, checks_of(CHECKS)) == [None]
    assert isinstance(drafted(submission, own), InvalidRequest)


def test_what_is_the_same_for_a_batch_is_so_for_each_of_it() -> None:
    """Keys of data that a channel takes for itself are found behind those that are well, and types have their own."""
    otp, order = NotificationType("otp"), NotificationType("order")
    own = TypedDefaults(ttl_s=5, ttls_s={otp: 30}, dedup_windows_s={order: 9}, channels_by_type={order: ("push",)})
    said = [
        Submission(user_id="ann", title="Hello", data=data, type=kind)
        for data in ({}, {"a": "b"}, {"aps": "x"}, {"a": "c"}, {"from": "x", "a": "d"}, {"gcm.x": 1})
        for kind in (None, otp, order)
    ]
    made = draft_plain(said, [ID] * len(said), APP, CALLER, own, NOW, checks_of(CHECKS))
    each = [drafted(one, own) for one in said]
    assert made == [one if isinstance(one, Draft) else None for one in each]
    assert [one is None for one in made] == [False] * 6 + [True] * 3 + [False] * 3 + [True] * 6
