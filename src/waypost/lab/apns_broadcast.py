"""Sending to a broadcast channel (Apple: "Sending broadcast push notification requests to APNs")."""

import re
import uuid
from collections.abc import Callable
from typing import Any

import msgspec

from waypost.lab import apns_payload
from waypost.lab.apns import TOPIC_SUFFIXES
from waypost.lab.apns_channels import ChannelTable, is_channel_id, request_id_is_canonical
from waypost.lab.apns_identity import Asking, IdentityCheck, Providers, bind, echoed_id, refused, tables
from waypost.lab.exchange import GatewayAnswer, Refusal, Request, Verdict

_PATH = re.compile(r"/4/broadcasts/apps/([^/?]+)\Z")
_PAYLOAD_BYTES = 5120
_SUFFIXES = tuple(suffix for suffix in TOPIC_SUFFIXES.values() if suffix)


class BroadcastRequest(Asking, kw_only=True):
    """A broadcast on its way through the checks; its topic is the path's bundle id."""

    channels: ChannelTable
    payload: Any = None

    @property
    def channel_id(self) -> str:
        """The channel it is for, empty for none."""
        return self.request.headers.get("apns-channel-id", "")


def _expiration_suits_channel(broadcast: BroadcastRequest) -> bool:
    """Check that a channel that stores nothing is given an expiration of 0."""
    value = broadcast.header("apns-expiration")
    if value is None:
        return True
    if not value.isdecimal():
        return False
    return broadcast.channels.of(broadcast.topic)[broadcast.channel_id].policy == 1 or value == "0"


def _payload_is_json(broadcast: BroadcastRequest) -> bool:
    try:
        broadcast.payload = msgspec.json.decode(broadcast.request.body)
    except msgspec.DecodeError:
        return False
    return isinstance(broadcast.payload, dict)


def _payload_is_activity(broadcast: BroadcastRequest) -> bool:
    return apns_payload.aps_is_sound(broadcast.payload, "liveactivity") and apns_payload.fits_type(
        broadcast.payload, "liveactivity"
    )


LINE: tuple[IdentityCheck[BroadcastRequest], ...] = (
    IdentityCheck(lambda b: not b.request.repeated, 400, "DuplicateHeaders"),
    IdentityCheck(lambda b: "?" not in b.request.path, 400, "BadRequestParams"),
    IdentityCheck(lambda b: bool(b.topic), 404, "BadPath"),
    IdentityCheck(lambda b: b.request.method == "POST", 405, "MethodNotAllowed"),
)
CONTENT: tuple[IdentityCheck[BroadcastRequest], ...] = (
    IdentityCheck(request_id_is_canonical, 400, "BadMessageId"),
    IdentityCheck(lambda b: not b.topic.endswith(_SUFFIXES), 400, "TopicDisallowed"),
    IdentityCheck(lambda b: b.topic in b.topics, 403, "TopicMismatch"),
    IdentityCheck(lambda b: b.channels.enabled(b.topic), 400, "FeatureNotEnabled"),
    IdentityCheck(lambda b: b.header("apns-push-type") is not None, 400, "MissingPushType"),
    IdentityCheck(lambda b: b.header("apns-push-type") == "liveactivity", 400, "InvalidPushType"),
    IdentityCheck(lambda b: bool(b.channel_id), 400, "MissingChannelId"),
    IdentityCheck(lambda b: is_channel_id(b.channel_id), 400, "BadChannelId"),
    IdentityCheck(lambda b: b.channel_id in b.channels.of(b.topic), 400, "ChannelNotRegistered"),
    IdentityCheck(lambda b: b.header("apns-priority") in (None, "1", "5", "10"), 400, "BadPriority"),
    IdentityCheck(_expiration_suits_channel, 400, "BadExpirationDate"),
    IdentityCheck(lambda b: bool(b.request.body), 400, "PayloadEmpty"),
    IdentityCheck(lambda b: len(b.request.body) <= _PAYLOAD_BYTES, 413, "PayloadTooLarge"),
    IdentityCheck(_payload_is_json, 400, "BadRequestPayload"),
    IdentityCheck(_payload_is_activity, 400, "BadRequestPayload", strict=True),
    IdentityCheck(lambda b: b.payload.get("aps", {}).get("event") != "start", 400, "BadRequestPayload", strict=True),
)
"""Nobody can start a live activity by broadcast: it has no channel yet."""


class BroadcastGateway:
    """The gateway api-broadcast.push.apple.com."""

    name = "apns_broadcast"

    def __init__(
        self,
        providers: Providers,
        channels: ChannelTable,
        *,
        environment: str,
        strict: bool,
        clock: Callable[[], float],
    ) -> None:
        self._providers, self._channels, self._environment, self._clock = providers, channels, environment, clock
        self._by_token, self._by_certificate = tables(LINE, CONTENT, strict=strict)

    def token_of(self, request: Request) -> str:
        """Return the channel."""
        return request.headers.get("apns-channel-id", "")

    def judge(self, request: Request) -> Verdict:
        """Judge the broadcast by the table of checks."""
        match = _PATH.match(request.path)
        broadcast = BroadcastRequest(
            request=request, providers=self._providers, environment=self._environment, now=self._clock(),
            topic=match[1] if match else "", channels=self._channels,
        )  # fmt: skip
        for check in self._by_token if request.connection.certificate is None else self._by_certificate:
            if not check.holds(broadcast):
                answer = self.refuse(Refusal(check.status, check.reason), request)
                return self._verdict(broadcast, answer, reason=check.reason)
        bind(broadcast)
        return self._verdict(broadcast, GatewayAnswer(200, self._ids(request)))

    def refuse(self, refusal: Refusal, request: Request, *, gone_at_ms: int | None = None) -> GatewayAnswer:
        """Refuse with Apple's JSON; a channel does not die, it is not registered any more."""
        return refused(refusal, request, "apns-request-id")

    def _ids(self, request: Request) -> tuple[tuple[str, str], ...]:
        ids = (("apns-request-id", echoed_id(request, "apns-request-id")),)
        return (*ids, ("apns-unique-id", str(uuid.uuid4()))) if self._environment == "sandbox" else ids

    def _verdict(self, broadcast: BroadcastRequest, answer: GatewayAnswer, *, reason: str = "") -> Verdict:
        return Verdict(
            answer=answer, accepted=not reason, reason=reason, token=broadcast.channel_id, push_type="broadcast",
            notification_id=apns_payload.notification_id(broadcast.payload),
        )  # fmt: skip
