"""Routes of one user's topics: by the app for anybody, by users for themselves where a topic is open."""

from __future__ import annotations

from litestar import Response, delete, get, put

from waypost.domain.errors import ErrorCode, NotFound
from waypost.entrypoints.access import DEVICES_OWN
from waypost.entrypoints.rest.answers import WRITE_CODES, answer, speaks
from waypost.entrypoints.rest.api import Call, api_of
from waypost.entrypoints.rest.parameters import PathIdentity, user_in
from waypost.features.topics.routes import PathTopic, known_topic, topic_in, topics_of
from waypost.features.topics.views import HeardTopics


@put(
    "/v1/users/{user_id:str}/topics/{topic:str}",
    tags=["Topics"],
    summary="Subscribe a user",
    operation_id="subscribeUser",
    status_code=204,
    opt=speaks({204: None}, DEVICES_OWN, codes=(ErrorCode.NOT_FOUND, *WRITE_CODES)),
)
async def subscribe(request: Call, user_id: PathIdentity, topic: PathTopic) -> None:
    """Let a user hear a topic. A user's own token reaches open topics alone."""
    user, name = user_in(request.user, user_id), await _reachable(request, topic)
    await topics_of(request).change(request.user.app, name, [user], [], api_of(request).clock.now())


@delete(
    "/v1/users/{user_id:str}/topics/{topic:str}",
    tags=["Topics"],
    summary="Unsubscribe a user",
    operation_id="unsubscribeUser",
    status_code=204,
    opt=speaks({204: None}, DEVICES_OWN, codes=(ErrorCode.NOT_FOUND, *WRITE_CODES)),
)
async def unsubscribe(request: Call, user_id: PathIdentity, topic: PathTopic) -> None:
    """Let a user hear a topic no more."""
    user, name = user_in(request.user, user_id), await _reachable(request, topic)
    await topics_of(request).change(request.user.app, name, [], [user], api_of(request).clock.now())


@get(
    "/v1/users/{user_id:str}/topics",
    tags=["Topics"],
    summary="List a user's topics",
    operation_id="listUserTopics",
    opt=speaks({200: HeardTopics}, DEVICES_OWN),
)
async def heard(request: Call, user_id: PathIdentity) -> Response[bytes]:
    """List the topics that a user hears; users see their open ones."""
    user, topics = user_in(request.user, user_id), topics_of(request)
    names = await topics.heard_by(request.user.app, user)
    if request.user.user is not None:
        found = [await topics.find(request.user.app, name) for name in names]
        names = [topic.name for topic in found if topic is not None and topic.is_open]
    return answer(200, HeardTopics(tuple(names)))


async def _reachable(request: Call, path_part: str) -> str:
    """Return the name of a topic that the caller may subscribe to; NotFound for any other, as if there was none."""
    topic = await known_topic(request, topic_in(path_part))
    if request.user.user is not None and not topic.is_open:
        raise NotFound("no such topic")
    return topic.name


USER_ROUTES = [subscribe, unsubscribe, heard]
