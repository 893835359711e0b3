"""Whatever a submission holds, the domain accepts it or says what is wrong: nothing else."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from waypost.domain.dedup import ClaimKind
from waypost.domain.drafting import Draft, draft
from waypost.domain.errors import InvalidRequest
from waypost.domain.ids import AppId, CallerId, NotificationId
from waypost.domain.submission import TTL_LIMIT_S, Defaults, Submission
from waypost.domain.time import DAY_MS, Instant, isoformat

NOW = Instant(1_800_000_000_000)
ID = NotificationId(bytes.fromhex("019a0000000070008000000000000001"))

words = st.text(min_size=1, max_size=20)
scalars = st.none() | st.booleans() | st.integers(-(2**80), 2**80) | st.floats(allow_nan=False) | st.text(max_size=20)
json_values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3)
)
objects = st.dictionaries(words | st.sampled_from(["headers", "payload", "aps", "token"]), json_values, max_size=4)
headers = st.dictionaries(
    st.sampled_from(["apns-priority", "apns-push-type", "Authorization", "x y", "urgency", ""]), json_values, max_size=3
)
overrides = st.dictionaries(
    st.sampled_from(["apns", "fcm", "webpush"]),
    objects | st.fixed_dictionaries({"headers": headers, "payload": objects}),
    max_size=3,
)
bodies = st.fixed_dictionaries(
    {"user_id": words},
    optional={
        "kind": st.sampled_from(["visible", "silent"]),
        "urgency": st.sampled_from(["critical", "low"]),
        "title": st.text(max_size=300),
        "body": st.text(max_size=50) | st.none(),
        "data": objects,
        "device_ids": st.lists(words, max_size=3),
        "actions": st.lists(st.fixed_dictionaries({"id": words, "title": words}), max_size=2),
        "badge": st.integers(-1, 100_001),
        "link": words,
        "ttl": st.integers(-1, 2**70),
        "dedup_window": st.integers(0, 2**40) | st.none(),
        "scheduled_at": st.datetimes(timezones=st.just(None)).map(lambda moment: f"{moment.isoformat()}Z"),
        "idempotency_key": words,
        "overrides": overrides,
        "retry_policy": words | st.just("s1_exponential"),
    },
)


def submitted(body: dict) -> Submission | None:
    """The body as the API reads it; None where its types are wrong already."""
    try:
        return msgspec.json.decode(msgspec.json.encode(body), type=Submission)
    except msgspec.ValidationError:
        return None


def drafted(submission: Submission) -> Draft | InvalidRequest:
    """The draft, or what is wrong with it."""
    try:
        return draft(submission, ID, AppId("demo"), CallerId("billing"), Defaults(), NOW)
    except InvalidRequest as invalid:
        return invalid


@given(bodies)
def test_a_submission_is_drafted_or_refused_with_its_faults(body: dict) -> None:
    """No other exception; what is drafted can be stored, shown, and expires after it is due."""
    submission = submitted(body)
    if submission is None:
        return
    made = drafted(submission)
    if isinstance(made, InvalidRequest):
        assert made.faults
        return
    notification = made.notification
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(notification), type=type(notification)) == notification
    assert isoformat(notification.expires_at) >= isoformat(notification.scheduled_at or NOW)
    assert all(len(claim.key) == 16 for claim in made.claims)


@given(bodies)
def test_the_same_submission_makes_the_same_draft(body: dict) -> None:
    """Content, keys and faults depend on nothing but what was said."""
    first, second = submitted(body), submitted(dict(reversed(body.items())))
    if first is None or second is None:
        return
    one, other = drafted(first), drafted(second)
    if isinstance(one, InvalidRequest) or isinstance(other, InvalidRequest):
        assert str(one) == str(other)
    else:
        assert one == other


seconds = st.integers(0, TTL_LIMIT_S)


@given(ttl=seconds, asked=st.none() | seconds, usual=seconds, ahead_s=st.integers(-10, 1_000), own_key=st.booleans())
def test_a_window_ends_when_it_was_asked_to_and_never_after_the_validity(
    ttl: int, asked: int | None, usual: int, ahead_s: int, own_key: bool
) -> None:
    """To the millisecond; a key of the caller's is kept for a day, and asks for no other window by itself."""
    submission = Submission(
        user_id="ann",
        title="Hello",
        ttl=ttl,
        dedup_window=asked,
        scheduled_at=datetime.fromtimestamp(NOW / 1000 + ahead_s, UTC),
        idempotency_key="k" if own_key else None,
    )
    made = draft(submission, ID, AppId("demo"), CallerId("billing"), Defaults(dedup_window_s=usual), NOW)
    wanted_s = asked if asked is not None else usual
    window_ms = min(wanted_s, max(ahead_s, 0) + ttl) * 1000
    expected = {ClaimKind.IDEMPOTENCY: DAY_MS} if own_key else {}
    if window_ms:
        expected[ClaimKind.CONTENT] = window_ms
    assert {claim.kind: claim.until - NOW for claim in made.claims} == expected
    assert all(claim.until <= made.notification.expires_at for claim in made.claims if claim.kind is ClaimKind.CONTENT)
