"""Routes of topics, for the app: which there are, and who hears them."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec
from litestar import Response, delete, get, post, put
from litestar.params import PathParameter, RawBody

from waypost.domain.errors import ErrorCode, Fault, InvalidRequest, NotFound
from waypost.domain.ids import UserId
from waypost.domain.scope import Scope
from waypost.domain.segment import TopicName
from waypost.domain.time import isoformat
from waypost.entrypoints.access import Access
from waypost.entrypoints.decoding import decode
from waypost.entrypoints.rest import cursors
from waypost.entrypoints.rest.answers import WRITE_CODES, answer, speaks
from waypost.entrypoints.rest.api import Call, api_of, ground_of
from waypost.entrypoints.rest.parameters import Limit, LongCursor, text_in
from waypost.entrypoints.rest.recording import record
from waypost.features.topics.views import (
    CountedTopic,
    SubmittedMembers,
    SubmittedTopic,
    TopicMemberPage,
    TopicPage,
    TopicView,
    topic_view,
)
from waypost.ports.audit import Act
from waypost.ports.topics import Topic, Topics

FEATURE: Final = "topics"
KEEPS_TOPICS: Final = Access(Scope.DEVICES)
"""The app says which topics there are, and who hears them."""
PathTopic = Annotated[str, PathParameter(description="The topic's name.")]

_submitted = msgspec.json.Decoder(SubmittedTopic)
_members = msgspec.json.Decoder(SubmittedMembers)


@put(
    "/v1/topics/{topic:str}",
    tags=["Topics"],
    summary="Make or change a topic",
    operation_id="putTopic",
    opt=speaks(
        {200: TopicView, 201: TopicView},
        KEEPS_TOPICS,
        body=SubmittedTopic,
        example={"description": "The results of the day", "open": True},
        meanings={200: "Changed; its members stay.", 201: "New."},
        codes=WRITE_CODES,
    ),
)
async def put_topic(request: Call, topic: PathTopic, body: RawBody) -> Response[bytes]:
    """Say that there is a topic, and whether users may subscribe by themselves."""
    said, name, app = decode(_submitted, body), topic_in(topic), request.user.app
    await record(request, Act.TOPIC_PUT, [name])
    now = api_of(request).clock.now()
    is_new = await topics_of(request).put(app, name, said.description, is_open=said.open, at=now)
    return answer(201 if is_new else 200, topic_view(await known_topic(request, name)))


@get(
    "/v1/topics/{topic:str}",
    tags=["Topics"],
    summary="Get a topic",
    operation_id="getTopic",
    opt=speaks({200: CountedTopic}, KEEPS_TOPICS, codes=(ErrorCode.NOT_FOUND,)),
)
async def get_topic(request: Call, topic: PathTopic) -> Response[bytes]:
    """Return a topic with the number of users who hear it."""
    found = await known_topic(request, topic_in(topic))
    members = await topics_of(request).count(found)
    view = CountedTopic(found.name, found.description, found.is_open, isoformat(found.created_at), members)
    return answer(200, view)


@get(
    "/v1/topics",
    tags=["Topics"],
    summary="List topics",
    operation_id="listTopics",
    opt=speaks({200: TopicPage}, KEEPS_TOPICS, codes=(ErrorCode.INVALID_CURSOR,)),
)
async def listed(request: Call, cursor: LongCursor = None, limit: Limit = 50) -> Response[bytes]:
    """List topics by name."""
    found = await topics_of(request).page(request.user.app, cursors.name(cursor), limit)
    following = cursors.of_name([each.name for each in found], limit)
    return answer(200, TopicPage(tuple(map(topic_view, found)), following))


@delete(
    "/v1/topics/{topic:str}",
    tags=["Topics"],
    summary="Remove a topic",
    operation_id="deleteTopic",
    status_code=204,
    opt=speaks({204: None}, KEEPS_TOPICS, codes=(ErrorCode.NOT_FOUND, *WRITE_CODES)),
)
async def remove_topic(request: Call, topic: PathTopic) -> None:
    """Remove a topic and all subscriptions to it. One that is made again under its name begins without any."""
    name = topic_in(topic)
    await record(request, Act.TOPIC_REMOVED, [name])
    if not await topics_of(request).remove(request.user.app, name):
        raise _no_topic()


@post(
    "/v1/topics/{topic:str}/members",
    tags=["Topics"],
    summary="Subscribe or unsubscribe users",
    operation_id="changeTopicMembers",
    status_code=204,
    opt=speaks(
        {204: None},
        KEEPS_TOPICS,
        body=SubmittedMembers,
        example={"add": ["user-1", "user-2"], "remove": ["user-3"]},
        codes=(ErrorCode.NOT_FOUND, ErrorCode.TOO_LARGE, *WRITE_CODES),
    ),
)
async def change_members(request: Call, topic: PathTopic, body: RawBody) -> None:
    """Subscribe and unsubscribe up to 10,000 users each. Whoever hears it already still does."""
    said = decode(_members, body)
    if both := set(said.add) & set(said.remove):
        raise InvalidRequest((Fault("remove", f"{len(both)} of these users are in add, too"),))
    now, name = api_of(request).clock.now(), topic_in(topic)
    add, take = list(map(UserId, said.add)), list(map(UserId, said.remove))
    if not await topics_of(request).change(request.user.app, name, add, take, now):
        raise _no_topic()


@get(
    "/v1/topics/{topic:str}/members",
    tags=["Topics"],
    summary="List a topic's members",
    operation_id="listTopicMembers",
    opt=speaks({200: TopicMemberPage}, KEEPS_TOPICS, codes=(ErrorCode.NOT_FOUND, ErrorCode.INVALID_CURSOR)),
)
async def members(request: Call, topic: PathTopic, cursor: LongCursor = None, limit: Limit = 50) -> Response[bytes]:
    """List the users who hear a topic, by id."""
    found = await topics_of(request).members(await known_topic(request, topic_in(topic)), cursors.name(cursor), limit)
    following = cursors.of_name(found, limit)
    return answer(200, TopicMemberPage(tuple(found), following))


def topic_in(path_part: str) -> str:
    """Read the topic a path names."""
    return text_in(path_part, "topic", TopicName)


def topics_of(request: Call) -> Topics:
    """Return the store of topics."""
    topics: Topics = ground_of(request, FEATURE).store.topics
    return topics


async def known_topic(request: Call, name: str) -> Topic:
    """Return the topic of that name; NotFound where there is none."""
    found = await topics_of(request).find(request.user.app, name)
    if found is None:
        raise _no_topic()
    return found


def _no_topic() -> NotFound:
    return NotFound("no such topic")


ROUTES = [put_topic, get_topic, listed, remove_topic, change_members, members]
