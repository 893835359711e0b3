"""How the big push services differ: endpoint form, status and words of each refusal."""

from collections.abc import Callable

import msgspec

from waypost.lab.exchange import Answer, Refusal

_TEXT = (("content-type", "text/plain; charset=UTF-8"),)
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
"""Reason to status and `errno`; every fault of the sender's identity is 401 with errno 109."""

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
    "vapid_invalid": (403, "BadJwtToken"),
    "vapid_key_mismatch": (403, "VapidPkHashMismatch"),
}


class PushService(msgspec.Struct, frozen=True):
    """One service's manners."""

    path: str
    """What stands before the subscription's id in an endpoint."""
    refuse: Callable[[Refusal], Answer]
    takes_zero_ttl: bool = True


def subscription_id(path: str) -> str:
    """The last part of an endpoint's path, or its `token` parameter."""
    return path.rpartition("/")[2].removeprefix("?token=")


def _rfc(refusal: Refusal) -> Answer:
    return Answer(refusal.status, _TEXT, refusal.reason.encode())


def _mozilla(refusal: Refusal) -> Answer:
    status, errno = refusal.status, 999
    if refusal.reason.startswith("vapid"):
        status, errno = 401, 109
    elif refusal.reason in _MOZILLA:
        status, errno = _MOZILLA[refusal.reason]
    body = {"code": status, "errno": errno, "error": refusal.reason, "message": refusal.reason.replace("_", " ")}
    headers = (*_JSON, ("cache-control", "max-age=86400")) if status == 410 else _JSON
    return Answer(status, headers, msgspec.json.encode(body))


def _apple(refusal: Refusal) -> Answer:
    status, reason = _APPLE.get(refusal.reason, (refusal.status, "BadWebPushRequest"))
    if refusal.reason.startswith("vapid") and refusal.reason not in _APPLE:
        status, reason = 403, "BadJwtToken"
    return Answer(status, _JSON, msgspec.json.encode({"reason": reason}))


def _chrome(refusal: Refusal) -> Answer:
    if refusal.reason == "vapid_missing":
        return Answer(401, _TEXT, b"authorization header must be specified.\n")
    if refusal.reason.startswith("vapid"):
        text = (
            b"the VAPID credentials in the authorization header do not correspond to the credentials used to create "
            b"the subscriptions.\n"
        )
        return Answer(403, _TEXT, text)
    if refusal.reason == "gone":
        return Answer(410, _TEXT, b"push subscription has unsubscribed or expired.\n")
    return _rfc(refusal)


def _windows(refusal: Refusal) -> Answer:
    """An empty body; the reason is in headers alone."""
    description = "Ttl value conflicts with X-WNS-Cache-Policy" if refusal.reason == "ttl_zero" else refusal.reason
    return Answer(refusal.status, (("x-wns-status", "dropped"), ("x-wns-error-description", description)))


SERVICES = {
    "rfc": PushService("/push/", _rfc),
    "mozilla": PushService("/wpush/v2/", _mozilla),
    "chrome": PushService("/fcm/send/", _chrome),
    "apple": PushService("/", _apple, takes_zero_ttl=False),
    "windows": PushService("/w/?token=", _windows, takes_zero_ttl=False),
}
