"""Broadcast channels: one push to everybody who follows a live activity. Made, read, listed, deleted and sent to.

Sources: developer.apple.com, "Sending channel management requests to APNs", "Sending broadcast push notification
requests to APNs", "Handling error responses from Apple Push Notification service" (broadcast).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Literal
from urllib.parse import quote

import msgspec
from msgspec import Struct

from waypost.channels.apns.credentials import Identity, identify
from waypost.channels.apns.errors import reason_of
from waypost.channels.apns.gateway import BROADCAST
from waypost.channels.apns.payload import BROADCAST_LIMIT_BYTES, LONGEST_STORED_S
from waypost.channels.apns.settings import ApnsSettings
from waypost.channels.push.answers import is_success
from waypost.channels.push.origin import authority_of
from waypost.channels.push.patience import until
from waypost.domain.channel import APNS
from waypost.domain.credential import CredentialId
from waypost.domain.errors import WaypostError
from waypost.domain.ids import AppId
from waypost.domain.time import SECOND_MS
from waypost.http2 import Answer, Origin, Pool, PoolSettings, Result, encode_headers
from waypost.ports.clock import Clock

MANAGEMENT = {
    "production": "https://api-manage-broadcast.push.apple.com:2196",
    "sandbox": "https://api-manage-broadcast.sandbox.push.apple.com:2195",
}

REASONS: dict[str, str] = {
    "FeatureNotEnabled": "switch on Broadcast for the app's bundle id, on Apple's page of its capabilities",
    "MissingChannelId": "name the channel",
    "BadChannelId": "that is no channel id",
    "ChannelNotRegistered": "there is no such channel in this environment",
    "CannotCreateChannelConfig": "the app has 10,000 channels already, as many as it may",
    "BadExpirationDate": "a channel that stores nothing takes an expiration of 0 alone",
    "BadRequestPayload": "Apple cannot read the body",
    "TopicDisallowed": "the bundle id must stand alone, without a suffix",
    "TopicMismatch": "the credential is not of the team that owns the bundle id",
    "PayloadTooLarge": "more than 5,120 bytes",
    "InvalidProviderToken": "the signing key, key id or team id is not accepted",
    "ExpiredProviderToken": "is the clock right?",
    "BadCertificate": "the client certificate is not accepted",
    "BadCertificateEnvironment": "the client certificate is for the other environment",
}
"""The remedy for each refusal; others mean a request that breaks a rule of Apple's."""
_AWAY = ("TooManyRequests", "TooManyProviderTokenUpdates", "InternalServerError", "Shutdown")
"""Reasons that mean "not now", beside the status 503, which Apple spells ``Service Unavailable`` here."""


class ChannelRefused(WaypostError):
    """The error that Apple refused what was asked of a channel; *reason* is Apple's own word."""

    def __init__(self, reason: str) -> None:
        why = REASONS.get(reason)
        super().__init__(f"Apple says {reason}" + (f": {why}" if why else ""))
        self.reason = reason


class AppleAway(WaypostError):
    """The error that Apple did not answer, or cannot now; the same request may succeed later."""


class BroadcastChannel(Struct, frozen=True):
    """A broadcast channel as Apple knows it."""

    storage: int = msgspec.field(name="message-storage-policy", default=0)
    """The messages it keeps: 0 stores none, 1 the last message for at most 8 hours."""
    push_type: str = msgspec.field(name="push-type", default="LiveActivity")


class _Listed(Struct):
    channels: tuple[str, ...] = ()


class BroadcastChannels:
    """The channels of one app in one environment; made by ``open_channels``."""

    def __init__(self, topic: str, identity: Identity, clock: Clock, manage: Origin, broadcast: Origin) -> None:
        self._topic = quote(topic, safe="")
        self._identity = identity
        self._clock = clock
        settings = PoolSettings(min_connections=0, max_connections=1, max_response_bytes=4 << 20)
        self._pools = {origin: Pool(origin, settings) for origin in (manage, broadcast)}
        self._manage = manage
        self._broadcast = broadcast

    async def create(self, *, stored: bool) -> str:
        """Create a channel and return its id. *stored* keeps the last message for devices that are away."""
        body = {"message-storage-policy": int(stored), "push-type": "LiveActivity"}
        answer = await self._ask(self._manage, "POST", self._of_app("channels"), msgspec.json.encode(body))
        return _header(answer, b"apns-channel-id")

    async def read(self, channel_id: str) -> BroadcastChannel:
        """Read the properties of a channel."""
        named = {"apns-channel-id": channel_id}
        answer = await self._ask(self._manage, "GET", self._of_app("channels"), headers=named)
        return msgspec.json.decode(answer.body, type=BroadcastChannel)

    async def delete(self, channel_id: str) -> None:
        """End a channel, for good; a stored message may still arrive."""
        named = {"apns-channel-id": channel_id}
        await self._ask(self._manage, "DELETE", self._of_app("channels"), headers=named)

    async def ids(self) -> tuple[str, ...]:
        """List every channel of the app."""
        answer = await self._ask(self._manage, "GET", self._of_app("all-channels"))
        return msgspec.json.decode(answer.body, type=_Listed).channels

    async def send(
        self,
        channel_id: str,
        aps: Mapping[str, Any],
        *,
        expires_in_s: int = 0,
        priority: Literal["1", "5", "10"] = "10",
    ) -> str:
        """Tell all who follow a channel; Apple's id of the request. A time of 0 is now or never, stored nowhere.

        *aps* is of a live activity: ``event`` (``update`` or ``end``; nobody can start one so), ``content-state``.
        """
        now_s = self._clock.now() // SECOND_MS
        body = msgspec.json.encode({"aps": {"timestamp": now_s} | dict(aps)})
        if len(body) > BROADCAST_LIMIT_BYTES:
            raise ChannelRefused("PayloadTooLarge")
        headers = {
            "apns-channel-id": channel_id,
            "apns-push-type": "liveactivity",
            "apns-priority": priority,
            "apns-expiration": str(now_s + min(expires_in_s, LONGEST_STORED_S) if expires_in_s else 0),
        }
        answer = await self._ask(self._broadcast, "POST", f"/4/broadcasts/apps/{self._topic}", body, headers)
        return _header(answer, b"apns-request-id")

    async def close(self) -> None:
        """Close the connections."""
        for pool in self._pools.values():
            await pool.close()

    def _of_app(self, what: str) -> str:
        return f"/1/apps/{self._topic}/{what}"

    async def _ask(
        self, origin: Origin, method: str, path: str, body: bytes = b"", headers: Mapping[str, str] | None = None
    ) -> Answer:
        """Send a request and return its answer; ChannelRefused or AppleAway say why it failed."""
        loop = asyncio.get_running_loop()
        jwt = self._identity.jwt_at(self._clock.now())
        fields = {":method": method, ":scheme": "https", ":authority": authority_of(origin), ":path": path}
        fields |= {"authorization": f"bearer {jwt}"} if jwt else {}
        fields |= headers or {}
        fields |= {"content-length": str(len(body))} if body else {}
        head = encode_headers([(name.encode(), value.encode()) for name, value in fields.items()])
        ended: asyncio.Future[Result] = loop.create_future()
        patience = until(loop.time())
        self._pools[origin].request(head, body, patience.deadline, ended.set_result, patience.answer_by)
        result = await ended
        if not isinstance(result, Answer):
            raise AppleAway(f"no answer from Apple: {result.reason}")
        if is_success(result):
            return result
        raise _refusal(result)


@asynccontextmanager
async def open_channels(app: AppId, settings: ApnsSettings, clock: Clock) -> AsyncIterator[BroadcastChannels]:
    """Open the channels of *app*; ConfigurationError names the setting that cannot be used."""
    section = CredentialId(app, APNS).section
    identity = identify(section, settings)
    hosts = (
        settings.channels_endpoint or MANAGEMENT[settings.environment],
        settings.broadcast_endpoint or BROADCAST[settings.environment],
    )
    manage, broadcast = (identity.origin(section, url, settings) for url in hosts)
    channels = BroadcastChannels(settings.topic, identity, clock, manage, broadcast)
    try:
        yield channels
    finally:
        await channels.close()


def _refusal(answer: Answer) -> WaypostError:
    reason = reason_of(answer)
    if reason in _AWAY or answer.status == 503:
        return AppleAway(f"Apple says {reason}; try again later")
    return ChannelRefused(reason)


def _header(answer: Answer, wanted: bytes) -> str:
    return next((value.decode("latin-1") for name, value in answer.headers if name == wanted), "")
