"""The errors of Google's APIs: the JSON envelope with its canonical status, and the HTML of the front end."""

from typing import Any

import msgspec

from waypost.lab.exchange import JSON_CONTENT, GatewayAnswer, Refusal

FCM_ERROR = "type.googleapis.com/google.firebase.fcm.v1.FcmError"
BAD_REQUEST = "type.googleapis.com/google.rpc.BadRequest"
QUOTA_FAILURE = "type.googleapis.com/google.rpc.QuotaFailure"

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
    409: "ALREADY_EXISTS",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    503: "UNAVAILABLE",
}
"""The canonical status beside each HTTP status (captured answers say NOT_FOUND, not UNREGISTERED, for 404)."""


def fcm_error(refusal: Refusal) -> GatewayAnswer:
    """Build the envelope for *refusal*, whose reason is FCM's errorCode, empty for none."""
    status = STATUS_OF_CODE.get(refusal.reason) or STATUS_OF_HTTP.get(refusal.status, "UNKNOWN")
    details = [{"@type": FCM_ERROR, "errorCode": refusal.reason}] if refusal.reason else []
    return envelope(refusal.status, status, refusal.detail or refusal.reason, details)


def quota_exceeded(retry_after_s: int) -> GatewayAnswer:
    """Build a 429 with the wait in `Retry-After`, and the quota that is used up."""
    text = "Quota exceeded for quota metric 'Send requests' and limit 'Send requests per minute'."
    violation = {"subject": "project", "description": text}
    details: list[dict[str, Any]] = [
        {"@type": FCM_ERROR, "errorCode": "QUOTA_EXCEEDED"},
        {"@type": QUOTA_FAILURE, "violations": [violation]},
    ]
    answer = envelope(429, "RESOURCE_EXHAUSTED", text, details)
    return GatewayAnswer(429, (*answer.headers, ("retry-after", str(retry_after_s))), answer.body)


def envelope(code: int, status: str, text: str, details: list[dict[str, Any]]) -> GatewayAnswer:
    """Build the error body of every Google API; `details` is left out when there are none."""
    error: dict[str, Any] = {"code": code, "message": text, "status": status}
    if details:
        error["details"] = details
    return GatewayAnswer(code, (JSON_CONTENT,), msgspec.json.encode({"error": error}))


def html(status: int, text: str) -> GatewayAnswer:
    """Build an answer of Google's front end, which speaks HTML."""
    body = f"<!DOCTYPE html>\n<html lang=en>\n<title>Error {status} ({text})!!1</title>\n<p><b>{status}.</b> {text}\n"
    return GatewayAnswer(status, (("content-type", "text/html; charset=UTF-8"),), body.encode())
