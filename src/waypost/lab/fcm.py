"""FCM HTTP v1: who may send, what is refused, and Google's error envelope."""

import re
import secrets
from collections.abc import Callable
from typing import Any

import msgspec

from waypost.lab.exchange import JSON_CONTENT, Answer, Refusal, Request, Verdict
from waypost.lab.fcm_message import FieldViolation, message_violations, normalized, payload_bytes
from waypost.lab.oauth import OAuthGateway
from waypost.lab.tokens import Tokens

STREAMS = 100
_PATH = re.compile(r"/v1/projects/([^/]+)/messages:send\Z")
_FCM_ERROR = "type.googleapis.com/google.firebase.fcm.v1.FcmError"
_BAD_REQUEST = "type.googleapis.com/google.rpc.BadRequest"
_INVALID_TOKEN = "The registration token is not a valid FCM registration token"

STATUS_OF_CODE = {
    "INVALID_ARGUMENT": "INVALID_ARGUMENT",
    "THIRD_PARTY_AUTH_ERROR": "UNAUTHENTICATED",
    "SENDER_ID_MISMATCH": "PERMISSION_DENIED",
    "UNREGISTERED": "NOT_FOUND",
    "QUOTA_EXCEEDED": "RESOURCE_EXHAUSTED",
    "INTERNAL": "INTERNAL",
    "UNAVAILABLE": "UNAVAILABLE",
    "UNSPECIFIED_ERROR": "UNKNOWN",
}
STATUS_OF_HTTP = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    503: "UNAVAILABLE",
}
"""The canonical status beside each HTTP status (captured answers say NOT_FOUND, not UNREGISTERED, for 404)."""


class Send(msgspec.Struct):
    """One request on its way through the checks."""

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


class Check(msgspec.Struct, frozen=True):
    """One row: when *holds* is false the answer is *status*; *code* is FCM's errorCode, empty for none."""

    holds: Callable[[Send], bool]
    status: int
    code: str
    text: str
    strict: bool = False


def _authorized(send: Send) -> bool:
    scheme, _, token = send.request.headers.get("authorization", "").partition(" ")
    return scheme == "Bearer" and send.gateway.oauth.valid(token)


def _own_project(send: Send) -> bool:
    match = _PATH.match(send.request.path)
    return match is not None and match[1] == send.gateway.project_id


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
    return "token" not in send.message or send.gateway.tokens.good("android", send.target)


def _installation_is_known(send: Send) -> bool:
    return "fid" not in send.message or send.gateway.tokens.good("android", send.target)


def _of_this_project(send: Send) -> bool:
    device = send.gateway.tokens.devices.get(send.target)
    return device is None or device.topic in (None, send.gateway.project_id)


def _fits(send: Send) -> bool:
    limit = 2048 if "topic" in send.message or "condition" in send.message else 4096
    return payload_bytes(send.message) <= limit


CHECKS = (
    Check(lambda s: bool(s.request.headers.get(":authority")), 400, "-html", "Bad Request"),
    Check(lambda s: _PATH.match(s.request.path) is not None, 404, "-html", "Not Found"),
    Check(lambda s: s.request.method == "POST", 404, "-html", "Not Found"),
    Check(
        _authorized, 401, "",
        "Request had invalid authentication credentials. Expected OAuth 2 access token, login cookie or other valid "
        "authentication credential.",
    ),
    Check(_own_project, 403, "", "Permission 'cloudmessaging.messages.create' denied on resource."),
    Check(
        lambda s: s.request.headers.get("content-type", "").startswith("application/json"),
        400, "", "Invalid content type.", strict=True,
    ),
    Check(_is_json_object, 400, "", "Invalid JSON payload received."),
    Check(_has_no_violations, 400, "-fields", ""),
    Check(_fits, 400, "", "Android message is too big"),
    Check(_token_is_alive, 404, "UNREGISTERED", "Requested entity was not found."),
    Check(_token_is_good, 400, "INVALID_ARGUMENT", _INVALID_TOKEN),
    Check(_installation_is_known, 404, "UNREGISTERED", "Requested entity was not found."),
    Check(_of_this_project, 403, "SENDER_ID_MISMATCH", "SenderId mismatch"),
)  # fmt: skip
"""`-html` is answered by Google's front end, `-fields` names the fields; an empty code means no FcmError detail."""


class FcmGateway:
    """fcm.googleapis.com."""

    name = "fcm"

    def __init__(self, project_id: str, oauth: OAuthGateway, tokens: Tokens, *, strict: bool) -> None:
        self.project_id, self.oauth, self.tokens, self.strict = project_id, oauth, tokens, strict
        self._checks = tuple(check for check in CHECKS if strict or not check.strict)

    def token_of(self, request: Request) -> str:
        """The message's token, found without judging the rest."""
        send = Send(request, self)
        return send.target if _is_json_object(send) else ""

    def judge(self, request: Request) -> Verdict:
        """Run the table."""
        send = Send(request, self)
        for check in self._checks:
            if not check.holds(send):
                return self._verdict(send, self._refusal(send, check), reason=check.code.strip("-") or check.text)
        dry = send.body.get("validate_only") is True
        message_id = "fake_message_id" if dry else f"0:{secrets.randbits(50):016d}%{secrets.token_hex(8)}"
        body = msgspec.json.encode({"name": f"projects/{self.project_id}/messages/{message_id}"})
        return self._verdict(send, Answer(200, (JSON_CONTENT,), body), accepted=not dry, reason="validate_only" * dry)

    def refuse(self, refusal: Refusal, *, gone_at_ms: int | None = None) -> Answer:
        """Google's envelope; *reason* is FCM's errorCode, empty for none. A dead token is always UNREGISTERED."""
        if gone_at_ms is not None:
            refusal = Refusal(404, "UNREGISTERED", "Requested entity was not found.")
        status = STATUS_OF_CODE.get(refusal.reason) or STATUS_OF_HTTP.get(refusal.status, "UNKNOWN")
        details = [{"@type": _FCM_ERROR, "errorCode": refusal.reason}] if refusal.reason else []
        return envelope(refusal.status, status, refusal.detail or refusal.reason, details)

    def _refusal(self, send: Send, check: Check) -> Answer:
        if check.code == "-html":
            return html(check.status, check.text)
        if check.code != "-fields":
            return self.refuse(Refusal(check.status, check.code, check.text))
        violations = [{"field": v.field, "description": v.description} for v in send.violations]
        text = "; ".join(violation.description for violation in send.violations)
        return envelope(400, "INVALID_ARGUMENT", text, [{"@type": _BAD_REQUEST, "fieldViolations": violations}])

    def _verdict(self, send: Send, answer: Answer, *, accepted: bool = False, reason: str = "") -> Verdict:
        data = send.message.get("data")
        notification_id = data.get("waypost_id") if isinstance(data, dict) else None
        return Verdict(
            answer=answer, accepted=accepted, reason=reason,
            token=send.target or str(send.message.get("topic") or send.message.get("condition") or ""),
            notification_id=notification_id if isinstance(notification_id, str) else "",
            push_type="notification" if "notification" in send.message else "data",
        )  # fmt: skip


def envelope(code: int, status: str, text: str, details: list[dict[str, Any]]) -> Answer:
    """The error body of every Google API; `details` is left out when there are none."""
    error: dict[str, Any] = {"code": code, "message": text, "status": status}
    if details:
        error["details"] = details
    return Answer(code, (JSON_CONTENT,), msgspec.json.encode({"error": error}))


def html(status: int, text: str) -> Answer:
    """An answer of Google's front end, which speaks HTML."""
    body = f"<!DOCTYPE html>\n<html lang=en>\n<title>Error {status} ({text})!!1</title>\n<p><b>{status}.</b> {text}\n"
    return Answer(status, (("content-type", "text/html; charset=UTF-8"),), body.encode())
