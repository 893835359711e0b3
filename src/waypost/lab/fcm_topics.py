"""The subscriptions to topics: FCM's topicSubscriptions resource and the older Instance ID calls."""

import datetime as dt
import re
import urllib.parse
from collections.abc import Callable
from typing import Any

import msgspec

from waypost.lab.exchange import JSON_CONTENT, GatewayAnswer, Refusal, Request, Verdict
from waypost.lab.google_errors import fcm_error, html
from waypost.lab.oauth import OAuthGateway
from waypost.lab.tokens import KnownTokens

MAX_TOPICS, MAX_IN_BATCH = 2000, 1000
_TOPIC = re.compile(r"[a-zA-Z0-9-_.~%]{1,900}\Z")
_RESOURCE = re.compile(r"/v1/projects/([^/]+)/registrations/([^/]+)/topicSubscriptions(?:/([^/]+))?\Z")
_BATCH = re.compile(r"/iid/v1:batch(Add|Remove)\Z")
_UNAUTHENTICATED = "Request had invalid authentication credentials. Expected OAuth 2 access token."


class TopicSubscriptions:
    """The subscriptions of every installation, and the two APIs that change them."""

    def __init__(self, project_id: str, oauth: OAuthGateway, tokens: KnownTokens, clock: Callable[[], float]) -> None:
        self._project_id, self._oauth, self._tokens, self._clock = project_id, oauth, tokens, clock
        self._since: dict[str, dict[str, float]] = {}

    def listeners(self, topic: str) -> list[str]:
        """List the living devices that hear *topic*."""
        return [each for each, topics in self._since.items() if topic in topics and each not in self._tokens.deaths]

    def judge(self, request: Request) -> Verdict:
        """Answer a request that is no message. What succeeds is no push, and so is not recorded."""
        path, _, query = request.path.partition("?")
        if batch := _BATCH.match(path):
            return self._verdict(self._change_batch(request, adds=batch[1] == "Add"))
        resource = _RESOURCE.match(path)
        if resource is None:
            return self._verdict(html(404, "Not Found"))
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        if scheme != "Bearer" or not self._oauth.valid(token):
            return self._verdict(fcm_error(Refusal(401, "", _UNAUTHENTICATED)))
        if resource[1] != self._project_id:
            return self._verdict(fcm_error(Refusal(403, "", "Permission denied on resource project.")))
        target = urllib.parse.unquote(resource[2])
        if not self._registered(target):
            return self._verdict(fcm_error(Refusal(404, "UNREGISTERED", "Requested entity was not found.")))
        name = resource[3] or dict(urllib.parse.parse_qsl(query)).get("topic_name", "")
        return self._verdict(self._change(request.method, target, urllib.parse.unquote(name), named=bool(resource[3])))

    def _change(self, method: str, target: str, topic: str, *, named: bool) -> GatewayAnswer:
        """Carry out one call on the collection, or on a member when *named*."""
        topics = self._since.setdefault(target, {})
        if method == "GET" and not named:
            return _ok({"topicSubscriptions": [self._shown(target, each) for each in topics]})
        if (method, named) not in (("POST", False), ("PATCH", True), ("GET", True), ("DELETE", True)):
            return html(404, "Not Found")
        if not _TOPIC.match(topic):
            return fcm_error(Refusal(400, "INVALID_ARGUMENT", "Invalid topic name"))
        if method == "POST" and topic in topics:
            return fcm_error(Refusal(409, "", "Requested entity already exists"))
        if method in ("GET", "DELETE") and topic not in topics:
            return fcm_error(Refusal(404, "", "Requested entity was not found."))
        if method == "DELETE":
            del topics[topic]
            return _ok({})
        if method != "GET" and topic not in topics:
            if len(topics) >= MAX_TOPICS:
                return fcm_error(Refusal(429, "", "Too many topics for this app instance."))
            topics[topic] = self._clock()
        return _ok(self._shown(target, topic), 201 if method == "POST" else 200)

    def _change_batch(self, request: Request, *, adds: bool) -> GatewayAnswer:
        """Answer Instance ID's batchAdd and batchRemove: one result for each token, in order."""
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        own = request.headers.get("access_token_auth") == "true"
        if not own or scheme != "Bearer" or not self._oauth.valid(token):
            return GatewayAnswer(401, (JSON_CONTENT,), b'{"error":"Unauthorized"}')
        if request.method != "POST":
            return GatewayAnswer(405, (JSON_CONTENT,), b'{"error":"MethodNotAllowed"}')
        try:
            body = msgspec.json.decode(request.body, type=dict[str, Any])
        except msgspec.MsgspecError:
            return GatewayAnswer(400, (JSON_CONTENT,), b'{"error":"InvalidJson"}')
        topic, tokens = str(body.get("to", "")).removeprefix("/topics/"), body.get("registration_tokens")
        if not _TOPIC.match(topic) or not str(body.get("to")).startswith("/topics/"):
            return GatewayAnswer(400, (JSON_CONTENT,), b'{"error":"InvalidTopicName"}')
        if not isinstance(tokens, list) or not 1 <= len(tokens) <= MAX_IN_BATCH:
            return GatewayAnswer(400, (JSON_CONTENT,), b'{"error":"InvalidTokens"}')
        return _ok({"results": [self._change_one(str(each), topic, adds=adds) for each in tokens]})

    def _change_one(self, token: str, topic: str, *, adds: bool) -> dict[str, str]:
        if not self._tokens.good("android", token):  # an installation id is no token
            return {"error": "INVALID_ARGUMENT"}
        if token in self._tokens.deaths:
            return {"error": "NOT_FOUND"}
        topics = self._since.setdefault(token, {})
        if not adds:
            topics.pop(topic, None)
        elif topic not in topics and len(topics) >= MAX_TOPICS:
            return {"error": "TOO_MANY_TOPICS"}
        else:
            topics.setdefault(topic, self._clock())
        return {}

    def _registered(self, target: str) -> bool:
        known = self._tokens.good("android", target) or self._tokens.good("fid", target)
        return known and target not in self._tokens.deaths

    def _shown(self, target: str, topic: str) -> dict[str, str]:
        made = dt.datetime.fromtimestamp(self._since[target][topic], dt.UTC).isoformat().replace("+00:00", "Z")
        name = f"projects/{self._project_id}/registrations/{target}/topicSubscriptions/{topic}"
        return {"name": name, "topicName": topic, "createTime": made}

    def _verdict(self, answer: GatewayAnswer) -> Verdict:
        refused = answer.status >= 400
        return Verdict(answer=answer, keep=refused, reason=f"topics {answer.status}" if refused else "")


def _ok(body: dict[str, Any], status: int = 200) -> GatewayAnswer:
    return GatewayAnswer(status, (JSON_CONTENT,), msgspec.json.encode(body))
