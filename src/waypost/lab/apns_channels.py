"""Apple's broadcast channels: making, reading and deleting them (host and port of their own)."""

import base64
import re
import secrets
from collections.abc import Callable
from typing import Any

import msgspec

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

_PATH = re.compile(r"/1/apps/([^/?]+)/(channels|all-channels)\Z")
_POLICIES = (0, 1)


class Channel(msgspec.Struct, frozen=True):
    """A broadcast channel: what it stores (0 nothing, 1 the latest message)."""

    policy: int


class ChannelTable:
    """The channels of every app, by bundle id and channel id; environments have their own."""

    def __init__(self, *, limit: int, enabled: tuple[str, ...] | None) -> None:
        self.limit, self._enabled = limit, enabled
        self._known: dict[str, dict[str, Channel]] = {}

    def enabled(self, bundle_id: str) -> bool:
        """Tell whether broadcast was switched on for an app in Apple's developer pages."""
        return self._enabled is None or bundle_id in self._enabled

    def of(self, bundle_id: str) -> dict[str, Channel]:
        """Return the channels of one app."""
        return self._known.setdefault(bundle_id, {})


class ChannelRequest(Asking, kw_only=True):
    """A request about channels on its way through the checks; its topic is the path's bundle id."""

    channels: ChannelTable
    kind: str
    body: Any = None

    @property
    def creates(self) -> bool:
        """Whether it is to make a channel."""
        return self.request.method == "POST"

    @property
    def names_channel(self) -> bool:
        """Whether it is about one channel that exists."""
        return self.kind == "channels" and not self.creates

    @property
    def channel_id(self) -> str:
        """The channel it names, empty for none."""
        return self.request.headers.get("apns-channel-id", "")


def is_channel_id(text: str) -> bool:
    """Tell whether *text* has the form of a channel id; its length is Apple's own affair."""
    try:
        return bool(base64.b64decode(text, validate=True))
    except ValueError:
        return False


def request_id_is_canonical(asking: Asking) -> bool:
    """Check that `apns-request-id` is absent or a lower-case UUID."""
    return (value := asking.header("apns-request-id")) is None or CANONICAL_UUID.match(value) is not None


def _method_fits(asked: ChannelRequest) -> bool:
    return asked.request.method in (("GET",) if asked.kind == "all-channels" else ("POST", "GET", "DELETE"))


def _body_is_json(asked: ChannelRequest) -> bool:
    if asked.creates:
        try:
            asked.body = msgspec.json.decode(asked.request.body)
        except msgspec.DecodeError:
            return False
    return not asked.creates or isinstance(asked.body, dict)


def _body(asked: ChannelRequest, key: str) -> Any:
    return asked.body.get(key) if asked.creates else None


LINE: tuple[IdentityCheck[ChannelRequest], ...] = (
    IdentityCheck(lambda a: not a.request.repeated, 400, "DuplicateHeaders"),
    IdentityCheck(lambda a: "?" not in a.request.path, 400, "BadRequestParams"),
    IdentityCheck(lambda a: bool(a.kind), 404, "BadPath"),
    IdentityCheck(_method_fits, 404, "BadPath"),
)
CONTENT: tuple[IdentityCheck[ChannelRequest], ...] = (
    IdentityCheck(request_id_is_canonical, 400, "BadMessageId"),
    IdentityCheck(lambda a: a.topic in a.topics, 403, "TopicMismatch"),
    IdentityCheck(lambda a: a.channels.enabled(a.topic), 400, "FeatureNotEnabled"),
    IdentityCheck(lambda a: not a.names_channel or bool(a.channel_id), 400, "MissingChannelId"),
    IdentityCheck(lambda a: not a.names_channel or is_channel_id(a.channel_id), 400, "BadChannelId"),
    IdentityCheck(lambda a: not a.names_channel or a.channel_id in a.channels.of(a.topic), 400, "ChannelNotRegistered"),
    IdentityCheck(lambda a: not a.creates or bool(a.request.body), 400, "PayloadEmpty"),
    IdentityCheck(_body_is_json, 400, "BadRequestPayload"),
    IdentityCheck(lambda a: not a.creates or "push-type" in a.body, 400, "MissingPushType"),
    IdentityCheck(lambda a: _body(a, "push-type") in (None, "LiveActivity"), 400, "InvalidPushType"),
    IdentityCheck(lambda a: not a.creates or _body(a, "message-storage-policy") in _POLICIES, 400, "BadRequestPayload"),
    IdentityCheck(
        lambda a: not a.creates or len(a.channels.of(a.topic)) < a.channels.limit, 400, "CannotCreateChannelConfig"
    ),
)  # fmt: skip


class ChannelsGateway:
    """The gateway api-manage-broadcast.push.apple.com."""

    name = "apns_channels"

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
        """Judge the request by the table of checks, then do what is asked."""
        match = _PATH.match(request.path)
        asked = ChannelRequest(
            request=request, providers=self._providers, environment=self._environment, now=self._clock(),
            topic=match[1] if match else "", kind=match[2] if match else "", channels=self._channels,
        )  # fmt: skip
        for check in self._by_token if request.connection.certificate is None else self._by_certificate:
            if not check.holds(asked):
                answer = self.refuse(Refusal(check.status, check.reason), request)
                return Verdict(answer=answer, reason=check.reason, token=asked.channel_id)
        bind(asked)
        return Verdict(answer=self._done(asked), accepted=True, token=asked.channel_id, push_type="channel")

    def refuse(self, refusal: Refusal, request: Request, *, gone_at_ms: int | None = None) -> GatewayAnswer:
        """Refuse with Apple's JSON; there is no dead token here."""
        return refused(refusal, request, "apns-request-id")

    def _done(self, asked: ChannelRequest) -> GatewayAnswer:
        ids = (("apns-request-id", echoed_id(asked.request, "apns-request-id")),)
        known = self._channels.of(asked.topic)
        if asked.kind == "all-channels":
            return GatewayAnswer(
                200, (*ids, ("content-type", "application/json")), msgspec.json.encode({"channels": [*known]})
            )
        if asked.creates:
            made = base64.b64encode(secrets.token_bytes(16)).decode()
            known[made] = Channel(asked.body["message-storage-policy"])
            return GatewayAnswer(201, (*ids, ("apns-channel-id", made)))
        if asked.request.method == "DELETE":
            del known[asked.channel_id]
            return GatewayAnswer(204, ids)
        shown = {"message-storage-policy": known[asked.channel_id].policy, "push-type": "LiveActivity"}
        return GatewayAnswer(200, (*ids, ("content-type", "application/json")), msgspec.json.encode(shown))
