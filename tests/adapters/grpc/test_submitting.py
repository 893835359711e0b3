"""Unary and batch calls: accepted, repeated, refused, in the words of REST."""

from __future__ import annotations

from typing import Any

import grpc
import pytest
from google.protobuf import json_format
from google.rpc import error_details_pb2

from tests.adapters.grpc.service import Door, details_of, reason, served, shown, status_in, violations
from tests.shows import shows
from waypost.domain.backlog import Backlog
from waypost.domain.errors import ErrorCode, StorageFull
from waypost.domain.notification import Lane
from waypost.ports.work import InProgress
from waypost.v1 import notifications_pb2 as pb

pytestmark = pytest.mark.asyncio


async def refused(door: Door, message: pb.Submission, *metadata: tuple[str, str]) -> grpc.aio.AioRpcError:
    """How a submission is refused."""
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await door.stub.Submit(message, metadata=[*door.key, *metadata])
    return caught.value


async def test_a_new_notification_gets_its_id_and_its_repetition_the_same() -> None:
    """Dedup by content is on, as at REST."""
    async with served() as door:
        first = await door.stub.Submit(shown(), metadata=door.key)
        again = await door.stub.Submit(shown(), metadata=door.key)
        assert (first.status, first.deduplicated) == (pb.NOTIFICATION_STATUS_PENDING, False)
        assert (again.id, again.deduplicated, again.HasField("record_id")) == (first.id, True, True)


EVERY_FIELD: dict[str, Any] = {
    "user_id": "user-1",
    "device_ids": ["phone", "watch"],
    "kind": "visible",
    "urgency": "critical",
    "title": "Ölwechsel 🚗",
    "subtitle": "s",
    "body": "line\nline",
    "data": {"n": 1, "half": 0.5, "deep": {"list": [1, "two", None, True, {"x": -3}]}, "big": 9007199254740992},
    "image": "https://example.com/i.png",
    "icon": "icon",
    "link": "app://x",
    "actions": [{"id": "a", "title": "A", "link": "app://a"}, {"id": "b", "title": "B"}],
    "sound": "ding",
    "badge": 0,
    "category": "c",
    "thread": "t",
    "android_channel": "ch",
    "collapse_key": "ck",
    "ttl": 60,
    "idempotency_key": "key-1",
    "dedup_window": 0,
    "guarantee": "at_most_once",
    "overrides": {"fcm": {"android": {"direct_boot_ok": True}}},
    "retry_policy": "s2_default",
}


def message_of(fields: dict[str, Any]) -> pb.Submission:
    """What says the same as *fields* do in JSON."""
    words = {"kind": "KIND_", "urgency": "URGENCY_", "guarantee": "GUARANTEE_", "push_type": "PUSH_TYPE_"}
    said = {name: f"{words[name]}{value.upper()}" if name in words else value for name, value in fields.items()}
    return json_format.ParseDict(said, pb.Submission())


async def test_each_call_ends_with_the_id_of_its_request() -> None:
    """Also one that is refused."""
    async with served() as door:
        mine = ("x-request-id", "call-7")
        call = door.stub.Submit(shown(), metadata=[*door.key, mine])
        assert (await call).id
        assert mine in tuple(await call.trailing_metadata())
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await door.stub.Submit(shown(), metadata=[mine])
        assert mine in tuple(caught.value.trailing_metadata() or ())


@shows("S1-04")
@pytest.mark.parametrize(
    "fields",
    [
        EVERY_FIELD,
        {"user_id": "u", "title": "later", "scheduled_at": "2027-02-01T00:00:00Z", "idempotency_key": "k"},
        {"user_id": "u", "title": "later", "send_at": "2027-02-01T09:00", "idempotency_key": "k"},
        {"user_id": "u", "title": "later", "send_at": "best 09:00-21:00", "idempotency_key": "k"},
    ],
)
async def test_both_doors_make_the_same_of_the_same(fields: dict[str, Any]) -> None:
    """The second door answers with the first one's id: not a byte of the body is another."""
    async with served() as door, door.service.client() as rest:
        at_rest = await rest.post("/v1/notifications", json=fields)
        assert at_rest.status_code == 202, at_rest.text
        here = await door.stub.Submit(message_of(fields), metadata=door.key)
        assert (here.id, here.deduplicated) == (at_rest.json()["id"], True)
        assert here.content_hash == at_rest.json()["content_hash"]


@shows("S1-04")
@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"user_id": ""},
        {"user_id": "u"},
        {"user_id": "u" * 129, "title": "t"},
        {"user_id": "a\u0000b", "title": "t"},
        {"user_id": "u", "title": "t" * 257},
        {"user_id": "u", "title": "t", "ttl": -1},
        {"user_id": "u", "title": "t", "badge": 100_000},
        {"user_id": "u", "title": "t", "actions": [{"id": "a", "title": "A"}, {"id": "", "title": "B"}]},
        {"user_id": "u", "title": "t", "actions": [{"id": "a", "title": "A", "link": "no link"}]},
        {"user_id": "u", "title": "t", "actions": [{"id": "a", "title": "A"}] * 9},
        {"user_id": "u", "title": "t", "device_ids": ["d", "d"]},
        {"user_id": "u", "title": "t", "device_ids": ["d", ""]},
        {"user_id": "u", "title": "t", "kind": "silent"},
        {"user_id": "u", "title": "t", "link": "no link"},
        {"user_id": "u", "title": "t", "idempotency_key": "no key"},
        {"user_id": "u", "title": "t", "retry_policy": "none such"},
        {"user_id": "u", "title": "t", "push_type": "background"},
        {"user_id": "u", "title": "t", "scheduled_at": "2029-01-01T00:00:00Z"},
        {"user_id": "u", "title": "t", "to": {"channel": "fcm", "kind": "topic", "name": "news"}},
        {"user_id": "u", "title": "t", "body": "b" * 70_000},
    ],
)
async def test_what_is_wrong_has_the_same_place_words_and_code_as_at_rest(fields: dict[str, Any]) -> None:
    """One validation, two doors; the one difference is how "" in a required field of a message reads."""
    async with served() as door, door.service.client() as rest:
        problem = (await rest.post("/v1/notifications", json=fields)).json()
        error = await refused(door, message_of(fields))
        assert error.code() is grpc.StatusCode.INVALID_ARGUMENT
        status = status_in(error)
        assert reason(status) == problem["code"]
        if fields.get("actions", [{"id": "a"}] * 2)[-1]["id"] == "":
            assert violations(status) == [("actions[1].id", "required")]
        else:
            assert violations(status) == [(fault["path"], fault["why"]) for fault in problem["faults"]]
        assert not door.service.store.rows


@pytest.mark.parametrize(
    ("message", "path", "why"),
    [
        (shown(kind=77), "kind", "not one of visible, silent"),
        (
            json_format.ParseDict({"user_id": "u", "title": "t", "data": {"a": [1, 2]}}, pb.Submission()),
            "data",
            "holds a number that JSON has not",
        ),
        (
            pb.Submission(user_id="u", title="t", scheduled_at={"seconds": 1 << 60}),
            "scheduled_at",
            "not a point in time",
        ),
    ],
)  # fmt: skip - a case each
async def test_what_json_cannot_say_is_refused_too(message: pb.Submission, path: str, why: str) -> None:
    """A message has values of its own that no JSON has."""
    for value in message.data.fields["a"].list_value.values if path == "data" else ():
        value.number_value = float("inf")
    async with served() as door:
        assert violations(status_in(await refused(door, message))) == [(path, why)]


async def test_an_enum_that_says_nothing_is_left_out() -> None:
    """Some clients always write the first value."""
    async with served() as door:
        silent = shown(kind=pb.KIND_UNSPECIFIED, urgency=pb.URGENCY_UNSPECIFIED)
        assert (await door.stub.Submit(silent, metadata=door.key)).id


async def test_an_idempotency_key_in_the_metadata_is_that_of_the_message() -> None:
    """The same as the header at REST; another body is ALREADY_EXISTS, two keys are refused."""
    key = ("idempotency-key", "k1")
    async with served() as door:
        first = await door.stub.Submit(shown(), metadata=[*door.key, key])
        again = await door.stub.Submit(shown(idempotency_key="k1"), metadata=door.key)
        assert (again.id, again.deduplicated) == (first.id, True)
        other = await refused(door, shown(body="other"), key)
        assert (other.code(), reason(status_in(other))) == (grpc.StatusCode.ALREADY_EXISTS, "idempotency_conflict")
        two = await refused(door, shown(idempotency_key="k2"), key)
        assert violations(status_in(two))[0][0] == "idempotency_key"


async def test_a_key_that_is_held_is_aborted_with_retry_info(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another request with it is being accepted."""

    async def held(_: object) -> list[InProgress]:
        return [InProgress(1_200)]

    async with served() as door:
        monkeypatch.setattr(door.service.work, "accept", held)
        error = await refused(door, shown())
        assert (error.code(), reason(status_in(error))) == (grpc.StatusCode.ABORTED, "in_progress")
        assert _wait_s(error) == 2


@pytest.mark.parametrize("why", ["backlog_full", "storage_full", "shutting_down"])
async def test_what_may_succeed_later_is_unavailable_with_retry_info(why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Clients retry UNAVAILABLE by themselves; nothing is written."""

    async def full(_: object) -> None:
        raise StorageFull("no room", retry_after_s=30)

    async with served() as door:
        if why == "backlog_full":
            door.service.backlog = Backlog(1, True, {(Lane.NORMAL, None): 1})
        elif why == "storage_full":
            monkeypatch.setattr(door.service.work, "accept", full)
        else:
            door.service.is_draining = True
        error = await refused(door, shown())
        assert (error.code(), reason(status_in(error))) == (grpc.StatusCode.UNAVAILABLE, why)
        assert _wait_s(error) >= 1
        assert not door.service.store.rows


def _wait_s(error: grpc.aio.AioRpcError) -> int:
    info = details_of(status_in(error))["RetryInfo"]
    assert isinstance(info, error_details_pb2.RetryInfo)
    return int(info.retry_delay.seconds)


async def test_a_batch_answers_each_item() -> None:
    """Accepted, repeated and refused side by side; faults are named by the place in the batch."""
    async with served() as door:
        batch = [shown("a"), shown("a"), shown("b", ttl=-1), pb.Submission(user_id="c")]
        answer = await door.stub.SubmitBatch(pb.SubmitBatchRequest(notifications=batch), metadata=door.key)
        assert (answer.accepted, answer.deduplicated, answer.refused) == (1, 1, 2)
        assert answer.results[1].notification.id == answer.results[0].notification.id
        places = [violations(result.error)[0][0] for result in answer.results[2:]]
        assert places == ["notifications[2].ttl", "notifications[3].title"]


@pytest.mark.parametrize("count", [0, 1_001])
async def test_a_batch_has_1_to_1000_items(count: int) -> None:
    """The same bounds as at REST."""
    batch = pb.SubmitBatchRequest(notifications=[shown(str(n)) for n in range(count)])
    async with served() as door:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await door.stub.SubmitBatch(batch, metadata=door.key)
        assert violations(status_in(caught.value))[0][0] == "notifications"
        assert not door.service.store.rows


async def test_get_shows_a_notification_to_its_app_alone() -> None:
    """What is not there and what is another app's cannot be told apart."""
    async with served() as door:
        made = await door.stub.Submit(shown(urgency=pb.URGENCY_HIGH), metadata=door.key)
        found = await door.stub.Get(pb.GetRequest(id=made.id), metadata=door.key)
        assert (found.id, found.user_id, found.urgency, found.round) == (made.id, "user-1", pb.URGENCY_HIGH, 1)
        assert found.expires_at.ToMilliseconds() - found.created_at.ToMilliseconds() == 86_400_000
        others = [("authorization", f"Bearer {door.service.others.text}")]
        for id_, metadata in ((made.id, others), (made.id[:-1] + "f", door.key), ("no id", door.key)):
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await door.stub.Get(pb.GetRequest(id=id_), metadata=metadata)
            assert reason(status_in(caught.value)) == ErrorCode.NOT_FOUND
