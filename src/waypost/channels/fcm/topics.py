"""The members of topics, and messages to all of them.

Sources: firebase.google.com, "Manage topic subscriptions" (one device a call) and developers.google.com/instance-id,
"Instance ID server reference" (1,000 tokens a call, no installation ids).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from urllib.parse import quote

import msgspec
from msgspec import Struct

from waypost.channels.fcm.calls import FOR_ACCESS_TOKENS, INSTANCE_ID, Done, GoogleCalls, NotDone, not_done
from waypost.channels.fcm.errors import code_of
from waypost.channels.fcm.payload import INSTALLATION_PREFIX, TOPIC_NAME
from waypost.channels.fcm.settings import GOOGLE, FcmSettings
from waypost.channels.push.reading import read_json
from waypost.domain.ids import AppId
from waypost.http2 import Answer
from waypost.ports.clock import Clock

MANY: Final = 1000
"""The most tokens in one call of the Instance ID service."""


INSTANCE_ID_CODES: dict[str, NotDone] = {
    code: NotDone(code, why, again)
    for code, why, again in (
        ("NOT_FOUND", "the app is no longer on the device", False),
        ("INVALID_ARGUMENT", "the token cannot be one, or is an installation id", False),
        ("TOO_MANY_TOPICS", "the device has 2,000 topics already", False),
        ("RESOURCE_EXHAUSTED", "too many changes a second", True),
        ("PERMISSION_DENIED", "the token belongs to another project", False),
        ("INTERNAL", "the service failed", True),
        ("UNAVAILABLE", "the service is not available", True),
    )
}
"""What the Instance ID service says of one token; any other code may work later."""


class _Line(Struct):
    error: str = ""


class _Lines(Struct):
    results: list[_Line]


class _Subscription(Struct, rename="camel"):
    topic_name: str = ""


class _Subscriptions(Struct, rename="camel"):
    topic_subscriptions: list[_Subscription] = []
    next_page_token: str = ""


_lines = msgspec.json.Decoder(_Lines)
_subscriptions = msgspec.json.Decoder(_Subscriptions)


class TopicMembers:
    """The topics of one project; a device is named as registered, by its token or ``fid:`` and installation id."""

    def __init__(self, app: AppId, settings: FcmSettings, *, clock: Clock) -> None:
        self._calls = GoogleCalls(app, settings, clock=clock)

    async def start(self) -> None:
        """Read the service account. ConfigurationError as the sender's."""
        await self._calls.start()

    async def stop(self) -> None:
        """End what runs and close."""
        await self._calls.stop()

    async def subscribe(self, device: str, topic: str) -> Done | NotDone:
        """Let *device* hear *topic*."""
        return await self._change("PATCH", device, topic)

    async def unsubscribe(self, device: str, topic: str) -> Done | NotDone:
        """Let *device* hear *topic* no more."""
        return await self._change("DELETE", device, topic)

    async def topics_of(self, device: str) -> list[str] | NotDone:
        """List the topics that *device* hears."""
        found: list[str] = []
        page = ""
        while True:
            path = self._collection(device) + (f"?page_token={quote(page, safe='')}" if page else "")
            result = await self._calls.call(GOOGLE, "GET", path, b"")
            if not isinstance(result, Answer) or result.status != 200:
                return not_done(result)
            got = read_json(_subscriptions, result.body) or _Subscriptions()
            found += [each.topic_name for each in got.topic_subscriptions]
            page = got.next_page_token
            if not page:
                return found

    async def subscribe_many(self, tokens: Sequence[str], topic: str) -> list[Done | NotDone]:
        """Let all *tokens* hear *topic*: an answer for each, in their order."""
        return await self._change_many("/iid/v1:batchAdd", tokens, topic)

    async def unsubscribe_many(self, tokens: Sequence[str], topic: str) -> list[Done | NotDone]:
        """Let none of *tokens* hear *topic*: an answer for each, in their order."""
        return await self._change_many("/iid/v1:batchRemove", tokens, topic)

    async def _change(self, method: str, device: str, topic: str) -> Done | NotDone:
        if not TOPIC_NAME.fullmatch(topic):
            return NotDone("INVALID_ARGUMENT", "the topic is not one", again=False)
        path = f"{self._collection(device)}/{quote(topic, safe='')}"
        result = await self._calls.call(GOOGLE, method, path, b"{}" if method == "PATCH" else b"")
        if isinstance(result, Answer):
            if result.status in (200, 201):
                return Done()
            if method == "DELETE" and result.status == 404 and code_of(result) == "NOT_FOUND":
                return Done()
        return not_done(result)

    async def _change_many(self, path: str, tokens: Sequence[str], topic: str) -> list[Done | NotDone]:
        found: list[Done | NotDone] = []
        for start in range(0, len(tokens), MANY):
            some = tokens[start : start + MANY]
            body = msgspec.json.encode({"to": f"/topics/{topic}", "registration_tokens": some})
            result = await self._calls.call(INSTANCE_ID, "POST", path, body, FOR_ACCESS_TOKENS)
            answer = read_json(_lines, result.body) if isinstance(result, Answer) and result.status == 200 else None
            if answer is None or len(answer.results) != len(some):
                found += [not_done(result)] * len(some)
            else:
                found += [_of_line(line.error) for line in answer.results]
        return found

    def _collection(self, device: str) -> str:
        name = quote(device.removeprefix(INSTALLATION_PREFIX), safe="")
        return f"/v1/projects/{self._calls.project_id}/registrations/{name}/topicSubscriptions"


def _of_line(code: str) -> Done | NotDone:
    if not code:
        return Done()
    return INSTANCE_ID_CODES.get(code, NotDone(code, "an answer that is not documented", again=True))
