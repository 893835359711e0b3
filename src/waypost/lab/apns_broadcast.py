"""Sending to a broadcast channel (Apple: "Sending broadcast push notification requests to APNs")."""

import re
import uuid
from collections.abc import Callable
from typing import Any

import msgspec

from waypost.lab import apns_payload
from waypost.lab.apns import TOPIC_SUFFIXES
from waypost.lab.apns_channels import Channels, is_channel_id, request_id_is_canonical
from waypost.lab.apns_identity import Asking, Check, Providers, bind, echoed_id, refused, tables
from waypost.lab.exchange import Answer, Refusal, Request, Verdict

_PATH = re.compile(r"/4/broadcasts/apps/([^/?]+)\Z")
_PAYLOAD_BYTES = 5120
_SUFFIXES = tuple(suffix for suffix in TOPIC_SUFFIXES.values() if suffix)


class Broadcast(Asking, kw_only=True):
    """One broadcast on its way through the checks; its topic is the path's bundle id."""

    channels: Channels
    payload: Any = None

    @property
    def channel_id(self) -> str:
        """The channel it is for, empty for none."""
        return self.request.headers.get("apns-channel-id", "")


def _expiration_suits_channel(broadcast: Broadcast) -> bool:
    """A channel that stores nothing takes 0 alone."""
    value = broadcast.header("apns-expiration")
    if value is None:
        return True
    if not value.isdecimal():
        return False
    return broadcast.channels.of(broadcast.topic)[broadcast.channel_id].policy == 1 or value == "0"


def _payload_is_json(broadcast: Broadcast) -> bool:
    try:
        broadcast.payload = msgspec.json.decode(broadcast.request.body)
    except msgspec.DecodeError:
        return False
    return isinstance(broadcast.payload, dict)


def _payload_is_activity(broadcast: Broadcast) -> bool:
    return apns_payload.aps_is_sound(broadcast.payload, "liveactivity") and apns_payload.fits_type(
        broadcast.payload, "liveactivity"
    )


LINE: tuple[Check[Broadcast], ...] = (
    Check(lambda b: not b.request.repeated, 400, "DuplicateHeaders"),
    Check(lambda b: "?" not in b.request.path, 400, "BadRequestParams"),
    Check(lambda b: bool(b.topic), 404, "BadPath"),
    Check(lambda b: b.request.method == "POST", 405, "MethodNotAllowed"),
)
CONTENT: tuple[Check[Broadcast], ...] = (
    Check(request_id_is_canonical, 400, "BadMessageId"),
    Check(lambda b: not b.topic.endswith(_SUFFIXES), 400, "TopicDisallowed"),
    Check(lambda b: b.topic in b.topics, 403, "TopicMismatch"),
    Check(lambda b: b.channels.enabled(b.topic), 400, "FeatureNotEnabled"),
    Check(lambda b: b.header("apns-push-type") is not None, 400, "MissingPushType"),
    Check(lambda b: b.header("apns-push-type") == "liveactivity", 400, "InvalidPushType"),
    Check(lambda b: bool(b.channel_id), 400, "MissingChannelId"),
    Check(lambda b: is_channel_id(b.channel_id), 400, "BadChannelId"),
    Check(lambda b: b.channel_id in b.channels.of(b.topic), 400, "ChannelNotRegistered"),
    Check(lambda b: b.header("apns-priority") in (None, "1", "5", "10"), 400, "BadPriority"),
    Check(_expiration_suits_channel, 400, "BadExpirationDate"),
    Check(lambda b: bool(b.request.body), 400, "PayloadEmpty"),
    Check(lambda b: len(b.request.body) <= _PAYLOAD_BYTES, 413, "PayloadTooLarge"),
    Check(_payload_is_json, 400, "BadRequestPayload"),
    Check(_payload_is_activity, 400, "BadRequestPayload", strict=True),
    Check(lambda b: b.payload.get("aps", {}).get("event") != "start", 400, "BadRequestPayload", strict=True),
)
"""Nobody can start a live activity by broadcast: it has no channel yet."""


class BroadcastGateway:
    """api-broadcast.push.apple.com."""

    name = "apns_broadcast"

    def __init__(
        self, providers: Providers, channels: Channels, *, environment: str, strict: bool, clock: Callable[[], float]
    ) -> None:
        self._providers, self._channels, self._environment, self._clock = providers, channels, environment, clock
        self._by_token, self._by_certificate = tables(LINE, CONTENT, strict=strict)

    def token_of(self, request: Request) -> str:
        """The channel."""
        return request.headers.get("apns-channel-id", "")

    def judge(self, request: Request) -> Verdict:
        """Run the table."""
        match = _PATH.match(request.path)
        broadcast = Broadcast(
            request=request, providers=self._providers, environment=self._environment, now=self._clock(),
            topic=match[1] if match else "", channels=self._channels,
        )  # fmt: skip
        for check in self._by_token if request.connection.certificate is None else self._by_certificate:
            if not check.holds(broadcast):
                answer = self.refuse(Refusal(check.status, check.reason), request)
                return self._verdict(broadcast, answer, reason=check.reason)
        bind(broadcast)
        return self._verdict(broadcast, Answer(200, self._ids(request)))

    def refuse(self, refusal: Refusal, request: Request, *, gone_at_ms: int | None = None) -> Answer:
        """Apple's JSON; a channel does not die, it is not registered any more."""
        return refused(refusal, request, "apns-request-id")

    def _ids(self, request: Request) -> tuple[tuple[str, str], ...]:
        ids = (("apns-request-id", echoed_id(request, "apns-request-id")),)
        return (*ids, ("apns-unique-id", str(uuid.uuid4()))) if self._environment == "sandbox" else ids

    def _verdict(self, broadcast: Broadcast, answer: Answer, *, reason: str = "") -> Verdict:
        return Verdict(
            answer=answer, accepted=not reason, reason=reason, token=broadcast.channel_id, push_type="broadcast",
            notification_id=apns_payload.notification_id(broadcast.payload),
        )  # fmt: skip
