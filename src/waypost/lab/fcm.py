"""FCM HTTP v1: who may send, what is refused, and Google's error envelope."""

import re
import secrets
from collections.abc import Callable
from typing import Any

import msgspec

from waypost.lab.exchange import JSON_CONTENT, GatewayAnswer, Refusal, Request, Verdict
from waypost.lab.fcm_groups import PATH as GROUPS_PATH
from waypost.lab.fcm_groups import DeviceGroups
from waypost.lab.fcm_message import FieldViolation, message_violations, normalized, payload_bytes
from waypost.lab.fcm_quota import FcmQuota
from waypost.lab.fcm_topics import TopicSubscriptions
from waypost.lab.google_errors import BAD_REQUEST, envelope, fcm_error, html, quota_exceeded
from waypost.lab.oauth import OAuthGateway
from waypost.lab.tokens import KnownTokens

STREAMS = 100
_PATH = re.compile(r"/v1/projects/([^/]+)/messages:send\Z")
_INVALID_TOKEN = "The registration token is not a valid FCM registration token"


class Send(msgspec.Struct):
    """A request on its way through the checks."""

    request: Request
    gateway: "FcmGateway"
    body: Any = None
    violations: list[FieldViolation] = []

    @property
    def message(self) -> dict[str, Any]:
        """The message, in snake_case names."""
        message = self.body.get("message") if isinstance(self.body, dict) else None
        return message if isinstance(message, dict) else {}

    @property
    def target(self) -> str:
        """The token or installation id, empty for topics and conditions."""
        target = self.message.get("token", self.message.get("fid", ""))
        return target if isinstance(target, str) else ""


class FcmCheck(msgspec.Struct, frozen=True):
    """A row of checks: when *holds* is false the answer is *status*; *code* is FCM's errorCode, empty for none."""

    holds: Callable[[Send], bool]
    status: int
    code: str
    text: str
    strict: bool = False


def _is_about_topics(path: str) -> bool:
    return not path.endswith(":send") and ("/topicSubscriptions" in path or path.startswith("/iid/"))


def _authorized(send: Send) -> bool:
    scheme, _, token = send.request.headers.get("authorization", "").partition(" ")
    return scheme == "Bearer" and send.gateway.oauth.valid(token)


def _own_project(send: Send) -> bool:
    match = _PATH.match(send.request.path)
    return match is not None and match[1] in (send.gateway.project_id, send.gateway.project_number)


def _is_json_object(send: Send) -> bool:
    try:
        body = msgspec.json.decode(send.request.body)
    except msgspec.DecodeError:
        return False
    send.body = normalized(body)
    return isinstance(send.body, dict)


def _has_no_violations(send: Send) -> bool:
    send.violations = message_violations(send.body, strict=send.gateway.strict)
    return not send.violations


def _token_is_alive(send: Send) -> bool:
    return send.target not in send.gateway.tokens.deaths


def _token_is_good(send: Send) -> bool:
    if "token" not in send.message or send.gateway.tokens.good("android", send.target):
        return True
    return send.gateway.groups.members(send.target) is not None


def _installation_is_known(send: Send) -> bool:
    return "fid" not in send.message or send.gateway.tokens.good("fid", send.target)


def _of_this_project(send: Send) -> bool:
    device = send.gateway.tokens.devices.get(send.target)
    return device is None or device.topic in (None, send.gateway.project_id)


def _fits(send: Send) -> bool:
    limit = 2048 if "topic" in send.message or "condition" in send.message else 4096
    return payload_bytes(send.message) <= limit


CHECKS = (
    FcmCheck(lambda s: bool(s.request.headers.get(":authority")), 400, "-html", "Bad Request"),
    FcmCheck(lambda s: _PATH.match(s.request.path) is not None, 404, "-html", "Not Found"),
    FcmCheck(lambda s: s.request.method == "POST", 404, "-html", "Not Found"),
    FcmCheck(
        _authorized, 401, "",
        "Request had invalid authentication credentials. Expected OAuth 2 access token, login cookie or other valid "
        "authentication credential.",
    ),
    FcmCheck(_own_project, 403, "", "Permission 'cloudmessaging.messages.create' denied on resource."),
    FcmCheck(lambda s: s.gateway.quota.take(), 429, "-quota", "QUOTA_EXCEEDED"),
    FcmCheck(
        lambda s: s.request.headers.get("content-type", "").startswith("application/json"),
        400, "", "Invalid content type.", strict=True,
    ),
    FcmCheck(_is_json_object, 400, "", "Invalid JSON payload received."),
    FcmCheck(_has_no_violations, 400, "-fields", ""),
    FcmCheck(_fits, 400, "", "Android message is too big"),
    FcmCheck(_token_is_alive, 404, "UNREGISTERED", "Requested entity was not found."),
    FcmCheck(_token_is_good, 400, "INVALID_ARGUMENT", _INVALID_TOKEN),
    FcmCheck(_installation_is_known, 404, "UNREGISTERED", "Requested entity was not found."),
    FcmCheck(_of_this_project, 403, "SENDER_ID_MISMATCH", "SenderId mismatch"),
)  # fmt: skip
"""`-html` is answered by Google's front end, `-fields` names the fields, `-quota` the wait; an empty code means no
FcmError detail."""


class FcmGateway:
    """The gateway fcm.googleapis.com, and iid.googleapis.com beside it."""

    quota: FcmQuota

    name = "fcm"

    def __init__(
        self, project_id: str, oauth: OAuthGateway, tokens: KnownTokens, *, strict: bool, quota_per_minute: int,
        clock: Callable[[], float], project_number: str = "",
    ) -> None:  # fmt: skip
        self.project_number = project_number
        self.project_id, self.oauth, self.tokens, self.strict = project_id, oauth, tokens, strict
        self.quota = FcmQuota(quota_per_minute, clock)
        self.topics = TopicSubscriptions(project_id, oauth, tokens, clock)
        self.groups = DeviceGroups(project_number, oauth, tokens, clock)
        self._checks = tuple(check for check in CHECKS if strict or not check.strict)

    def token_of(self, request: Request) -> str:
        """Read the message's token, without judging the rest."""
        send = Send(request, self)
        return send.target if _is_json_object(send) else ""

    def reached_by(self, message: dict[str, Any]) -> list[str]:
        """List the devices that a message, as it was accepted, goes to."""
        if "topic" in message:
            return self.topics.listeners(message["topic"])
        members = self.groups.members(message["token"])
        return [message["token"]] if members is None else members

    def judge(self, request: Request) -> Verdict:
        """Judge the message by the table of checks."""
        if _is_about_topics(request.path):
            return self.topics.judge(request)
        if request.path.partition("?")[0] == GROUPS_PATH:
            return self.groups.judge(request)
        send = Send(request, self)
        for check in self._checks:
            if not check.holds(send):
                return self._verdict(send, self._refusal(send, check), reason=check.code.strip("-") or check.text)
        dry = send.body.get("validate_only") is True
        message_id = "fake_message_id" if dry else f"0:{secrets.randbits(50):016d}%{secrets.token_hex(8)}"
        body = msgspec.json.encode({"name": f"projects/{self.project_id}/messages/{message_id}"})
        return self._verdict(
            send, GatewayAnswer(200, (JSON_CONTENT,), body), accepted=not dry, reason="validate_only" * dry
        )

    def refuse(self, refusal: Refusal, request: Request, *, gone_at_ms: int | None = None) -> GatewayAnswer:
        """Refuse in Google's envelope; *reason* is FCM's errorCode, empty for none. A dead token is UNREGISTERED."""
        if gone_at_ms is not None:
            refusal = Refusal(404, "UNREGISTERED", "Requested entity was not found.")
        return fcm_error(refusal)

    def _refusal(self, send: Send, check: FcmCheck) -> GatewayAnswer:
        if check.code == "-html":
            return html(check.status, check.text)
        if check.code == "-quota":
            return quota_exceeded(self.quota.wait_s())
        if check.code != "-fields":
            return self.refuse(Refusal(check.status, check.code, check.text), send.request)
        violations = [{"field": v.field, "description": v.description} for v in send.violations]
        text = "; ".join(violation.description for violation in send.violations)
        return envelope(400, "INVALID_ARGUMENT", text, [{"@type": BAD_REQUEST, "fieldViolations": violations}])

    def _verdict(self, send: Send, answer: GatewayAnswer, *, accepted: bool = False, reason: str = "") -> Verdict:
        data = send.message.get("data")
        notification_id = data.get("waypost_id") if isinstance(data, dict) else None
        return Verdict(
            answer=answer, accepted=accepted, reason=reason,
            token=send.target or str(send.message.get("topic") or send.message.get("condition") or ""),
            notification_id=notification_id if isinstance(notification_id, str) else "",
            push_type="notification" if "notification" in send.message else "data",
        )  # fmt: skip
