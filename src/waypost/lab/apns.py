"""Apple's provider API for pushes to devices: what is checked, in which order, and how it is answered."""

import re
import uuid
from collections.abc import Callable
from typing import Any

import msgspec

from waypost.lab import apns_payload
from waypost.lab.apns_identity import (
    CANONICAL_UUID,
    Asking,
    IdentityCheck,
    Providers,
    bind,
    echoed_id,
    refused,
    tables,
)
from waypost.lab.exchange import GatewayAnswer, Refusal, Request, Verdict
from waypost.lab.tokens import KnownTokens

_FAR_FUTURE_S = 10 * 365 * 86400
_DEVICE_PATH = "/3/device/"
_TOPIC_FORM = re.compile(r"[A-Za-z0-9.-]{1,255}\Z")
_PAYLOAD_BYTES, _VOIP_PAYLOAD_BYTES = 4096, 5120

TOPIC_SUFFIXES = {
    "alert": "",
    "background": "",
    "location": ".location-query",
    "voip": ".voip",
    "complication": ".complication",
    "fileprovider": ".pushkit.fileprovider",
    "liveactivity": ".push-type.liveactivity",
    "pushtotalk": ".voip-ptt",
    "widgets": ".push-type.widgets",
    "controls": ".push-type.controls",
    "mdm": "",
}
_NAMED_IN_CERTIFICATES = ("voip", "complication")
"""The push types a certificate is good for only when it names their topic too."""


class Push(Asking, kw_only=True):
    """A push on its way through the checks."""

    tokens: KnownTokens
    token: str
    push_type: str
    payload: Any = None


def _id_is_canonical(push: Push) -> bool:
    return (value := push.header("apns-id")) is None or CANONICAL_UUID.match(value) is not None


def _has_topic(push: Push) -> bool:
    """Check the topic; a certificate with one topic may leave the header out."""
    if not push.topic and push.certificate is not None and len(push.certificate.topics) == 1:
        push.topic = push.certificate.topics[0]
    return bool(push.topic)


def _topic_allowed(push: Push) -> bool:
    if push.certificate is not None and push.push_type in _NAMED_IN_CERTIFICATES:
        return push.topic in push.topics
    return push.topic.removesuffix(TOPIC_SUFFIXES[push.push_type]) in push.topics


def _topic_fits_type(push: Push) -> bool:
    suffix = TOPIC_SUFFIXES[push.push_type]
    if suffix:
        return push.topic.endswith(suffix)
    return not any(other and push.topic.endswith(other) for other in TOPIC_SUFFIXES.values())


def _expiration_is_epoch(push: Push) -> bool:
    return (value := push.header("apns-expiration")) is None or value.isdecimal()


def _expiration_is_seconds(push: Push) -> bool:
    return (value := push.header("apns-expiration")) is None or int(value[:15]) < push.now + _FAR_FUTURE_S


def _background_is_priority_5(push: Push) -> bool:
    return push.push_type != "background" or push.header("apns-priority") == "5"


def _payload_fits(push: Push) -> bool:
    return len(push.request.body) <= (_VOIP_PAYLOAD_BYTES if push.push_type == "voip" else _PAYLOAD_BYTES)


def _payload_is_json(push: Push) -> bool:
    try:
        push.payload = msgspec.json.decode(push.request.body)
    except msgspec.DecodeError:
        return False
    return isinstance(push.payload, dict)


def _token_of_environment(push: Push) -> bool:
    device = push.tokens.devices.get(push.token)
    return device is None or device.environment in (None, push.environment)


def _token_of_topic(push: Push) -> bool:
    device = push.tokens.devices.get(push.token)
    return device is None or device.topic in (None, push.topic)


LINE: tuple[IdentityCheck[Push], ...] = (
    IdentityCheck(lambda p: not p.request.repeated, 400, "DuplicateHeaders"),
    IdentityCheck(lambda p: p.request.path.startswith(_DEVICE_PATH), 404, "BadPath"),
    IdentityCheck(lambda p: p.request.method == "POST", 405, "MethodNotAllowed"),
    IdentityCheck(lambda p: bool(p.token), 400, "MissingDeviceToken"),
)
CONTENT: tuple[IdentityCheck[Push], ...] = (
    IdentityCheck(_id_is_canonical, 400, "BadMessageId"),
    IdentityCheck(_has_topic, 400, "MissingTopic"),
    IdentityCheck(lambda p: bool(_TOPIC_FORM.match(p.topic)), 400, "BadTopic"),
    IdentityCheck(lambda p: p.header("apns-push-type") is not None, 400, "InvalidPushType", strict=True),
    IdentityCheck(lambda p: p.push_type in TOPIC_SUFFIXES, 400, "InvalidPushType"),
    IdentityCheck(_topic_fits_type, 400, "InvalidPushType"),
    IdentityCheck(
        lambda p: p.certificate is None or p.push_type != "location", 403, "MissingProviderToken", strict=True
    ),
    IdentityCheck(_topic_allowed, 400, "TopicDisallowed"),
    IdentityCheck(lambda p: len((p.header("apns-collapse-id") or "").encode("latin-1")) <= 64, 400, "BadCollapseId"),
    IdentityCheck(_expiration_is_epoch, 400, "BadExpirationDate"),
    IdentityCheck(_expiration_is_seconds, 400, "BadExpirationDate", strict=True),
    IdentityCheck(lambda p: p.header("apns-priority") in (None, "1", "5", "10"), 400, "BadPriority"),
    IdentityCheck(_background_is_priority_5, 400, "BadPriority"),
    IdentityCheck(lambda p: bool(p.request.body), 400, "PayloadEmpty"),
    IdentityCheck(_payload_fits, 413, "PayloadTooLarge"),
    IdentityCheck(lambda p: p.header("content-encoding") is None, 400, "BadRequestPayload", strict=True),
    IdentityCheck(_payload_is_json, 400, "BadRequestPayload", strict=True),
    IdentityCheck(lambda p: apns_payload.aps_is_sound(p.payload, p.push_type), 400, "BadRequestPayload", strict=True),
    IdentityCheck(lambda p: apns_payload.fits_type(p.payload, p.push_type), 400, "InvalidPushType", strict=True),
    IdentityCheck(lambda p: p.tokens.good("ios", p.token), 400, "BadDeviceToken"),
    IdentityCheck(_token_of_environment, 400, "BadDeviceToken"),
    IdentityCheck(_token_of_topic, 400, "DeviceTokenNotForTopic"),
    IdentityCheck(lambda p: p.token not in p.tokens.deaths, 410, "Unregistered"),
)
"""Apple does not document the order of its checks; this one asks who before what, and what before to whom."""


class ApnsGateway:
    """Apple's host for one environment."""

    tokens: KnownTokens
    environment: str

    def __init__(
        self, name: str, providers: Providers, tokens: KnownTokens, *, environment: str, strict: bool,
        clock: Callable[[], float],
    ) -> None:  # fmt: skip
        self.name, self.providers, self.tokens, self.environment = name, providers, tokens, environment
        self._by_token, self._by_certificate = tables(LINE, CONTENT, strict=strict)
        self._clock = clock

    def token_of(self, request: Request) -> str:
        """Return the last part of the path."""
        return request.path.removeprefix(_DEVICE_PATH)

    def judge(self, request: Request) -> Verdict:
        """Judge the push by the table of checks."""
        headers = request.headers
        push = Push(
            request=request, providers=self.providers, environment=self.environment, now=self._clock(),
            topic=headers.get("apns-topic", ""), tokens=self.tokens, token=self.token_of(request),
            push_type=headers.get("apns-push-type", "alert"),
        )  # fmt: skip
        for check in self._by_token if request.connection.certificate is None else self._by_certificate:
            if not check.holds(push):
                return self._refused(push, check)
        bind(push)
        answer = GatewayAnswer(200, self._ids(request))
        return Verdict(
            answer=answer, accepted=True, token=push.token, push_type=push.push_type,
            notification_id=apns_payload.notification_id(push.payload),
        )  # fmt: skip

    def refuse(self, refusal: Refusal, request: Request, *, gone_at_ms: int | None = None) -> GatewayAnswer:
        """Refuse with Apple's JSON."""
        return refused(refusal, request, "apns-id", gone_at_ms)

    def _ids(self, request: Request) -> tuple[tuple[str, str], ...]:
        ids = (("apns-id", echoed_id(request, "apns-id")),)
        if self.environment == "sandbox":
            return (*ids, ("apns-unique-id", str(uuid.uuid4())))
        return ids

    def _refused(self, push: Push, check: IdentityCheck[Push]) -> Verdict:
        gone_at_ms = self.tokens.deaths.get(push.token) if check.status == 410 else None
        answer = self.refuse(Refusal(check.status, check.reason), push.request, gone_at_ms=gone_at_ms)
        return Verdict(
            answer=answer, reason=check.reason, token=push.token, push_type=push.push_type,
            notification_id=apns_payload.notification_id(push.payload),
        )  # fmt: skip
