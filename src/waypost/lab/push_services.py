"""The differences between the big push services: endpoint form, status, words and headers of each answer."""

import secrets
import uuid
from collections.abc import Callable

import msgspec

from waypost.lab.exchange import GatewayAnswer, Refusal

Headers = tuple[tuple[str, str], ...]

_TEXT = (("content-type", "text/plain; charset=UTF-8"),)
_HTML = (("content-type", "text/html; charset=UTF-8"),)
_JSON = (("content-type", "application/json"),)

_MOZILLA = {
    "unknown_subscription": (404, 102),
    "gone": (410, 103),
    "too_large": (413, 104),
    "encoding_invalid": (400, 110),
    "undecryptable": (400, 110),
    "key_reused": (400, 110),
    "ttl_missing": (400, 111),
    "urgency_invalid": (400, 110),
    "topic_invalid": (400, 113),
}
"""The status and `errno` for each reason; every fault of the sender's identity is 401 with errno 109."""
_MOZILLA_ERRNO_OF_STATUS = {404: 102, 410: 103, 413: 104, 502: 900, 503: 201}

_APPLE = {
    "unknown_subscription": (404, "BadPath"),
    "gone": (410, "Unregistered"),
    "method_not_allowed": (405, "MethodNotAllowed"),
    "too_large": (413, "PayloadTooLarge"),
    "ttl_missing": (400, "BadTtl"),
    "ttl_zero": (400, "BadTtl"),
    "urgency_invalid": (400, "BadUrgency"),
    "topic_invalid": (400, "BadWebPushTopic"),
    "vapid_missing": (403, "BadAuthorizationHeader"),
    "vapid_key_invalid": (403, "BadVapidPublicKey"),
    "vapid_key_mismatch": (403, "VapidPkHashMismatch"),
}
_APPLE_REASON_OF_STATUS = {429: "TooManyRequests", 500: "InternalServerError", 503: "ServiceUnavailable"}

_CHROME = {
    "vapid_missing": (401, b"authorization header must be specified.\n"),
    "gone": (410, b"push subscription has unsubscribed or expired.\n"),
    "unknown_subscription": (404, b"A valid push subscription endpoint should be specified in the URL.\n"),
}
_CHROME_VAPID = (
    b"the VAPID credentials in the authorization header do not correspond to the credentials used to create the "
    b"subscriptions.\n"
)
_WINDOWS = {"ttl_zero": "Ttl value conflicts with X-WNS-Cache-Policy", "gone": "The channel has expired"}


class ServiceProfile(msgspec.Struct, frozen=True):
    """The behaviour of one push service."""

    path: str
    """The part of an endpoint before the subscription's id."""
    refuse: Callable[[Refusal], GatewayAnswer]
    taken: Callable[[str, int], Headers]
    """The headers of a 201, given the origin and the TTL in seconds that is kept."""
    takes_zero_ttl: bool = True
    wants_subject: bool = True
    receipts: bool = False
    """Whether `Prefer: respond-async` is heeded; no big service does."""


def subscription_id(path: str) -> str:
    """Read the last part of an endpoint's path, or its `token` parameter."""
    return path.rpartition("/")[2].removeprefix("?token=")


def _located(origin: str, ttl_s: int) -> Headers:
    return (("location", f"{origin}/message/{secrets.token_urlsafe(18)}"), ("ttl", str(ttl_s)))


def _apple_taken(_origin: str, _ttl_s: int) -> Headers:
    return (("apns-id", str(uuid.uuid4())),)


def _windows_taken(origin: str, ttl_s: int) -> Headers:
    wns = (
        ("x-wns-status", "received"),
        ("x-wns-msg-id", secrets.token_hex(8)),
        ("x-wns-notificationstatus", "received"),
    )
    return (*wns, *_located(origin, ttl_s))


def _rfc(refusal: Refusal) -> GatewayAnswer:
    return GatewayAnswer(refusal.status, _TEXT, refusal.reason.encode())


def _mozilla(refusal: Refusal) -> GatewayAnswer:
    status, errno = refusal.status, _MOZILLA_ERRNO_OF_STATUS.get(refusal.status, 999)
    if refusal.reason.startswith("vapid"):
        status, errno = 401, 109
    elif refusal.reason in _MOZILLA:
        status, errno = _MOZILLA[refusal.reason]
    body = {"code": status, "errno": errno, "error": refusal.reason, "message": refusal.reason.replace("_", " ")}
    more = {410: (("cache-control", "max-age=86400"),), 503: (("retry-after", "120"),)}.get(status, ())
    return GatewayAnswer(status, (*_JSON, *more), msgspec.json.encode(body))


def _apple(refusal: Refusal) -> GatewayAnswer:
    default = _APPLE_REASON_OF_STATUS.get(refusal.status, "BadWebPushRequest")
    status, reason = _APPLE.get(refusal.reason, (refusal.status, default))
    if refusal.reason.startswith("vapid") and refusal.reason not in _APPLE:
        status, reason = 403, "BadJwtToken"
    if refusal.reason[:1].isupper():  # a script's own word
        reason = refusal.reason
    return GatewayAnswer(status, _JSON, msgspec.json.encode({"reason": reason}))


def _chrome(refusal: Refusal) -> GatewayAnswer:
    if refusal.reason == "vapid_legacy":
        return GatewayAnswer(400, _HTML, b"<HTML><HEAD><TITLE>UnauthorizedRegistration</TITLE></HEAD></HTML>\n")
    if refusal.reason in _CHROME:
        status, text = _CHROME[refusal.reason]
        return GatewayAnswer(status, _TEXT, text)
    if refusal.reason.startswith("vapid"):
        return GatewayAnswer(403, _TEXT, _CHROME_VAPID)
    return _rfc(refusal)


def _windows(refusal: Refusal) -> GatewayAnswer:
    """Refuse with an empty body, the reason in headers. Throttling is 406, every fault of identity 400."""
    status = 400 if refusal.reason.startswith("vapid") else 406 if refusal.status == 429 else refusal.status
    wns = "channelthrottled" if status == 406 else "dropped"
    description = _WINDOWS.get(refusal.reason, refusal.reason)
    headers = (("x-wns-status", wns), ("x-wns-notificationstatus", wns), ("x-wns-error-description", description))
    return GatewayAnswer(status, headers)


SERVICES = {
    "rfc": ServiceProfile("/push/", _rfc, _located, receipts=True),
    "mozilla": ServiceProfile("/wpush/v2/", _mozilla, _located, wants_subject=False),
    "chrome": ServiceProfile("/fcm/send/", _chrome, _located),
    "apple": ServiceProfile("/", _apple, _apple_taken, takes_zero_ttl=False),
    "windows": ServiceProfile("/w/?token=", _windows, _windows_taken, takes_zero_ttl=False),
}
