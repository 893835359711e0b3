"""Submitting through the API: new, repeated, refused; one by one and in batches."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import httpx
import pytest

from tests.adapters.rest.service import DEMO, OTHER, served, shown
from tests.shows import shows
from waypost.domain.backlog import Backlog
from waypost.domain.errors import ErrorCode, StorageFull, Unavailable
from waypost.domain.ids import parse_id
from waypost.domain.notification import Lane
from waypost.entrypoints.rest.request_handler import RequestHandler
from waypost.ports.work import Acceptance, InProgress, NewNotification, Unwritten

pytestmark = [pytest.mark.asyncio, pytest.mark.usefixtures("each_store")]


def code_of(answer: httpx.Response) -> str:
    """The stable code of a problem; it is one, and says the status it came with."""
    assert answer.headers["content-type"] == "application/problem+json"
    problem = answer.json()
    assert problem["status"] == answer.status_code
    assert problem["type"] == f"urn:waypost:problem:{problem['code']}"
    return str(problem["code"])


@shows("S2-16", "S3-28")
async def test_a_new_notification_is_202_with_its_id() -> None:
    """The id can be asked for at once."""
    async with served() as (_, client):
        answer = await client.post("/v1/notifications", json=shown(data={"order": 7}))
        assert answer.status_code == 202
        said = answer.json()
        assert (said["status"], said["deduplicated"]) == ("pending", False)
        assert len(said["content_hash"]) == 16
        found = (await client.get(f"/v1/notifications/{said['id']}")).json()
        assert found["notification"]["status"] == "pending"
        assert found["content"] == {"title": "Hello", "data": {"order": 7}}


@shows("S4-67")
async def test_a_scheduled_one_says_so() -> None:
    """`scheduled` until its time; a time that has passed is now."""
    async with served() as (_, client):
        later = await client.post("/v1/notifications", json=shown(scheduled_at="2027-01-15T09:00:00+00:00"))
        past = await client.post("/v1/notifications", json=shown(title="x", scheduled_at="2020-01-15T09:00:00Z"))
        assert (later.json()["status"], past.json()["status"]) == ("scheduled", "pending")


@shows("S1-27", "S1-28", "S1-80")
async def test_the_same_content_again_is_200_with_the_first_id() -> None:
    """A content duplicate leaves a record of its own, listed under the first."""
    async with served() as (_, client):
        first = (await client.post("/v1/notifications", json=shown())).json()
        again = await client.post("/v1/notifications", json=shown())
        said = again.json()
        assert again.status_code == 200
        assert (said["id"], said["deduplicated"], said["status"]) == (first["id"], True, "pending")
        assert said["content_hash"] == first["content_hash"]
        record = (await client.get(f"/v1/notifications/{said['record_id']}")).json()["notification"]
        assert (record["status"], record["duplicate_of"]) == ("deduplicated", first["id"])
        assert (await client.get(f"/v1/notifications/{first['id']}")).json()["duplicates"] == [said["record_id"]]


@shows("S2-16", "S2-18")
@pytest.mark.parametrize("by_header", [True, False])
async def test_the_same_idempotency_key_is_the_same_id(by_header: bool) -> None:
    """Another body under it is a conflict; a key may come in the body or the header."""
    async with served() as (_, client):
        headers = {"idempotency-key": "order-7"} if by_header else {}
        body = shown() if by_header else shown(idempotency_key="order-7")
        first = await client.post("/v1/notifications", json=body, headers=headers)
        again = await client.post("/v1/notifications", json=body, headers=headers)
        assert (first.status_code, again.status_code) == (202, 200)
        assert again.json()["id"] == first.json()["id"]
        assert "record_id" not in again.json()
        other = await client.post("/v1/notifications", json={**body, "title": "Other"}, headers=headers)
        assert (other.status_code, code_of(other)) == (409, "idempotency_conflict")


async def test_header_and_body_may_not_name_different_keys() -> None:
    """Equal ones are fine."""
    async with served() as (_, client):
        headers = {"idempotency-key": "a"}
        same = await client.post("/v1/notifications", json=shown(idempotency_key="a"), headers=headers)
        different = await client.post("/v1/notifications", json=shown(idempotency_key="b"), headers=headers)
        assert (same.status_code, code_of(different)) == (202, "invalid_request")


async def test_a_key_that_is_held_is_409_with_retry_after() -> None:
    """The other request's answer is not known yet."""
    async with served() as (service, client):

        async def held(_batch: object) -> list[InProgress]:
            return [InProgress(1_500)]

        service.work.accept = held  # type: ignore[method-assign,assignment] # a store with two-state keys answers this
        answer = await client.post("/v1/notifications", json=shown(idempotency_key="a"))
        assert (answer.status_code, code_of(answer), answer.headers["retry-after"]) == (409, "in_progress", "2")


async def test_a_batch_answers_each_item() -> None:
    """Equal items are duplicates of the first; a wrong one harms no other."""
    async with served() as (_, client):
        items = [shown("a"), shown("a"), {"user_id": 1}, {"user_id": "b"}, shown("c")]
        answer = await client.post("/v1/notifications/batch", json={"notifications": items})
        said = answer.json()
        assert answer.status_code == 202
        assert (said["accepted"], said["deduplicated"], said["refused"]) == (2, 1, 2)
        first, second, wrong_type, empty, _ = said["results"]
        assert second["notification"]["id"] == first["notification"]["id"]
        assert wrong_type["error"]["faults"] == [
            {"path": "notifications[2].user_id", "why": "must be a string or null, not a whole number"}
        ]
        assert empty["error"]["faults"][0]["path"] == "notifications[3].title"


async def test_a_batch_without_anything_new_is_200() -> None:
    """All repeated, or all refused."""
    async with served() as (_, client):
        body = {"notifications": [shown()]}
        statuses = [(await client.post("/v1/notifications/batch", json=body)).status_code for _ in range(2)]
        refused = await client.post("/v1/notifications/batch", json={"notifications": [{}]})
        assert (statuses, refused.status_code) == ([202, 200], 200)


@pytest.mark.parametrize("count", [0, 1_001])
async def test_a_batch_has_1_to_1000_items(count: int) -> None:
    """Nothing of another is accepted."""
    async with served() as (service, client):
        items = [shown(f"user-{n}") for n in range(count)]
        answer = await client.post("/v1/notifications/batch", json={"notifications": items})
        assert code_of(answer) == "invalid_request"
        assert not await service.accepted()


async def test_what_comes_at_one_moment_is_answered_one_by_one() -> None:
    """They are taken in together, and each is answered as if it had come alone: new, repeated, refused."""
    async with served() as (service, client):
        assert (await client.post("/v1/notifications", json=shown("user-0"))).status_code == 202  # the key is known now
        one, other = shown(title="One", idempotency_key="k"), shown(title="Other", idempotency_key="k")
        said = [one, shown("user-2"), other, shown("user-3", title=""), one, shown("user-2"), shown(urgency="critical")]
        answers = await asyncio.gather(*(client.post("/v1/notifications", json=each) for each in said))
        assert [each.status_code for each in answers] == [202, 202, 409, 400, 200, 200, 202]
        ids = [answers[n].json()["id"] for n in (0, 4, 1, 5, 6)]
        assert (ids[0], ids[2]) == (ids[1], ids[3])
        assert len(set(ids)) == 3
        users = {each.user_id for each in await service.accepted()}
        assert users == {"user-0", "user-1", "user-2"}


async def test_who_needs_what_others_need_not_wait_for_is_taken_in_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor do keys that cannot be looked up refuse what has none."""
    async with served() as (service, client):
        assert (await client.post("/v1/notifications", json=shown("user-0"))).status_code == 202  # the key is known now
        together: list[list[str]] = []
        accept = service.work.accept

        async def noted(batch: Sequence[NewNotification]) -> Sequence[Acceptance]:
            together.append([each.notification.content.title or "" for each in batch])
            answers: Sequence[Acceptance] = await accept(batch)
            return answers

        monkeypatch.setattr(service.work, "accept", noted)
        said = [shown(user, title="plain") for user in ("user-1", "user-2")]
        said += [shown(user, title="keyed", idempotency_key=user) for user in ("user-3", "user-4")]
        said += [shown(user, title="collapsing", collapse_key="k") for user in ("user-5", "user-6")]
        answers = await asyncio.gather(*(client.post("/v1/notifications", json=each) for each in said))
        assert {each.status_code for each in answers} == {202}
        assert sorted(together) == [["collapsing"], ["collapsing"], ["keyed", "keyed"], ["plain", "plain"]]


async def test_of_what_comes_at_one_moment_all_is_refused_where_its_lane_is_full() -> None:
    """Each by itself; what is in another lane is not."""
    async with served() as (service, client):
        service.backlog = Backlog(4, True, {(Lane.NORMAL, OTHER): 4})
        said = [shown(), shown("user-2"), shown(urgency="high"), shown("user-3")]
        answers = await asyncio.gather(*(client.post("/v1/notifications", json=each) for each in said))
        assert [each.status_code for each in answers] == [429, 429, 202, 429]
        assert {each.headers["retry-after"] for each in answers if each.status_code == 429} == {"5"}


async def test_a_full_backlog_is_429_and_nothing_is_written() -> None:
    """Other lanes go on."""
    async with served() as (service, client):
        service.backlog = Backlog(4, True, {(Lane.NORMAL, OTHER): 4})
        refused = await client.post("/v1/notifications", json=shown())
        assert (refused.status_code, code_of(refused), refused.headers["retry-after"]) == (429, "backlog_full", "5")
        assert refused.json()["detail"] == "the normal backlog is full"
        assert (await client.post("/v1/notifications", json=shown(urgency="high"))).status_code == 202


async def test_one_apps_flood_leaves_room_for_another() -> None:
    """Who floods is told that the part of this app is full; an app that has nothing waiting is accepted."""
    async with served() as (service, client):
        service.backlog = Backlog(4, True, {(Lane.NORMAL, DEMO): 2})
        refused = await client.post("/v1/notifications", json=shown())
        assert (refused.status_code, code_of(refused), refused.headers["retry-after"]) == (429, "backlog_full", "5")
        assert refused.json()["detail"] == "this app's part of the normal backlog is full"
        async with service.client(service.others.text) as other:
            assert (await other.post("/v1/notifications", json=shown())).status_code == 202


async def test_a_store_that_cannot_take_it_is_503() -> None:
    """The code says which trouble it is."""
    async with served() as (service, client):

        async def full(_batch: object) -> list[InProgress]:
            raise StorageFull("no room to accept more", retry_after_s=30)

        service.work.accept = full  # type: ignore[method-assign,assignment] # a disk that is full
        answer = await client.post("/v1/notifications/batch", json={"notifications": [shown()]})
        assert (answer.status_code, code_of(answer), answer.headers["retry-after"]) == (503, "storage_full", "30")


async def test_of_a_batch_that_is_written_in_part_each_item_says_whether_it_is() -> None:
    """Whoever is told that nothing was accepted sends all of it again."""
    async with served() as (service, client):
        accept = service.work.accept

        async def first_alone(batch: Sequence[NewNotification]) -> list[Acceptance]:
            return [*await accept(batch[:1]), Unwritten(Unavailable("the log did not acknowledge", retry_after_s=2))]

        service.work.accept = first_alone  # type: ignore[method-assign,assignment] # as a log answers
        answer = await client.post("/v1/notifications/batch", json={"notifications": [shown("a"), shown("b")]})
        said = answer.json()
        assert (answer.status_code, said["accepted"], said["refused"]) == (202, 1, 1)
        written, unwritten = said["results"]
        assert written["notification"]["status"] == "pending"
        assert (unwritten["error"]["status"], unwritten["error"]["code"]) == (503, "storage_busy")


async def test_while_draining_nothing_new_is_taken_but_answers_are_given() -> None:
    """A caller retries elsewhere."""
    async with served() as (service, client):
        service.is_draining = True
        answer = await client.post("/v1/notifications", json=shown())
        assert (answer.status_code, code_of(answer)) == (503, ErrorCode.SHUTTING_DOWN)
        assert (await client.get("/v1/notifications")).status_code == 200
        assert (await client.get("/health/ready")).status_code == 503


async def test_what_is_larger_than_64_kib_as_stored_is_413_with_both_sizes() -> None:
    """Limits are of bytes, not characters."""
    async with served() as (_, client):
        answer = await client.post("/v1/notifications", json=shown(data={"x": "é" * 40_000}))
        assert (answer.status_code, code_of(answer)) == (413, "too_large")
        assert "at most 65536" in answer.json()["detail"]


async def test_through_the_framework_the_answers_are_the_same() -> None:
    """The hot route is a shortcut, not another API."""
    async with served() as (service, client):
        assert isinstance(service.app, RequestHandler)
        service.app._hot.clear()
        answer = await client.post("/v1/notifications", json=shown(), headers={"idempotency-key": "a"})
        batch = await client.post("/v1/notifications/batch", json={"notifications": [shown("b")]})
        assert (answer.status_code, batch.status_code) == (202, 202)
        assert await service.views.detail(DEMO, parse_id(answer.json()["id"])) is not None
