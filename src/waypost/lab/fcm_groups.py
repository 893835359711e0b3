"""The device groups of FCM: made, changed and looked up at `/fcm/notification`, told through their keys.

Source: firebase.google.com, "Send messages to device groups"; what is refused, and how, is from public clients
of it. The words for a group that would be too large are not documented: these are ours.
"""

import secrets
import urllib.parse
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from waypost.lab.exchange import JSON_CONTENT, GatewayAnswer, Request, Verdict
from waypost.lab.oauth import OAuthGateway
from waypost.lab.tokens import KnownTokens

MAX_MEMBERS = 20
PATH = "/fcm/notification"


class _Group(msgspec.Struct):
    key: str
    members: dict[str, None]


class DeviceGroups:
    """The groups of one project by name, and the API that changes them."""

    def __init__(self, sender_id: str, oauth: OAuthGateway, tokens: KnownTokens, clock: Callable[[], float]) -> None:
        self._sender_id, self._oauth, self._tokens, self._clock = sender_id, oauth, tokens, clock
        self._groups: dict[str, _Group] = {}

    def members(self, key: str) -> list[str] | None:
        """List the living devices of the group of *key*; None where that is no group's."""
        group = next((each for each in self._groups.values() if each.key == key), None)
        return None if group is None else [each for each in group.members if each not in self._tokens.deaths]

    def judge(self, request: Request) -> Verdict:
        """Answer a request about a group. What succeeds is no push, and so is not recorded."""
        answer = self._answer(request)
        refused = answer.status >= 400
        return Verdict(answer=answer, keep=refused, reason=f"groups {answer.status}" if refused else "")

    def _answer(self, request: Request) -> GatewayAnswer:
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        own = request.headers.get("access_token_auth") == "true"
        if not own or scheme != "Bearer" or not self._oauth.valid(token):
            return GatewayAnswer(401, (JSON_CONTENT,), b'{"error":"Unauthorized"}')
        if request.headers.get("project_id") != self._sender_id:
            return _refused("project_id is not the sender id of the credentials")
        if request.method == "GET":
            query = urllib.parse.parse_qs(request.path.partition("?")[2])
            group = self._groups.get(query.get("notification_key_name", [""])[0])
            return _refused("notification_key not found") if group is None else _done(group)
        if request.method != "POST":
            return GatewayAnswer(405, (JSON_CONTENT,), b'{"error":"MethodNotAllowed"}')
        try:
            body = msgspec.json.decode(request.body, type=dict[str, Any])
        except msgspec.MsgspecError:
            return _refused("BadJsonFormat")
        return self._changed(body)

    def _changed(self, body: dict[str, Any]) -> GatewayAnswer:
        name, operation = body.get("notification_key_name"), body.get("operation")
        if not isinstance(name, str) or not name or operation not in ("create", "add", "remove"):
            return _refused("BadRequest")
        if operation == "create":
            return self._created(name, self._valid(body))
        group = self._groups.get(name)
        keys = {each.key for each in self._groups.values()}
        if group is None or body.get("notification_key") != group.key:
            is_of_another = body.get("notification_key") in keys
            return _refused(_OTHER_NAME if is_of_another else "notification_key not found")
        return self._added(group, self._valid(body)) if operation == "add" else self._removed(name, group, body)

    def _created(self, name: str, tokens: Sequence[str]) -> GatewayAnswer:
        if name in self._groups:
            return _refused("notification_key already exists")
        group = _Group(f"APA91b{secrets.token_urlsafe(96)}", {})
        answer = self._added(group, tokens)
        if answer.status == 200:
            self._groups[name] = group
        return answer

    def _added(self, group: _Group, tokens: Sequence[str]) -> GatewayAnswer:
        if not tokens:
            return _refused("no valid registration ids")
        if len(group.members | dict.fromkeys(tokens)) > MAX_MEMBERS:
            return _refused("too many registration ids")
        group.members |= dict.fromkeys(tokens)
        return _done(group)

    def _removed(self, name: str, group: _Group, body: dict[str, Any]) -> GatewayAnswer:
        tokens = [each for each in _listed(body) if each in group.members]
        if not tokens:
            return _refused("no valid registration ids")
        for each in tokens:
            del group.members[each]
        if not group.members:  # a group ends with its last device, and its key with it
            del self._groups[name]
            self._tokens.deaths[group.key] = int(self._clock() * 1000)
        return _done(group)

    def _valid(self, body: dict[str, Any]) -> list[str]:
        good = [each for each in _listed(body) if self._tokens.good("android", each)]
        return [each for each in good if each not in self._tokens.deaths]


_OTHER_NAME = "notification_key_name doesn't match the group name of the notification_key"


def _listed(body: dict[str, Any]) -> list[str]:
    given = body.get("registration_ids")
    return [each for each in given if isinstance(each, str)] if isinstance(given, list) else []


def _done(group: _Group) -> GatewayAnswer:
    return GatewayAnswer(200, (JSON_CONTENT,), msgspec.json.encode({"notification_key": group.key}))


def _refused(error: str) -> GatewayAnswer:
    return GatewayAnswer(400, (JSON_CONTENT,), msgspec.json.encode({"error": error}))
