"""A device: one installation of one app by one user."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from waypost.domain.ids import AppId, DeviceId, UserId
from waypost.domain.notification import Channel
from waypost.domain.time import Instant


class Platform(StrEnum):
    """What a device runs; ``unknown`` comes from imports only and is skipped with a reason."""

    IOS = "ios"
    ANDROID = "android"
    WEB = "web"
    UNKNOWN = "unknown"


CHANNEL_OF_PLATFORM: dict[Platform, Channel] = {
    Platform.IOS: Channel.APNS,
    Platform.ANDROID: Channel.FCM,
    Platform.WEB: Channel.WEBPUSH,
}


class SubscriptionKeys(Struct, frozen=True):
    """The two keys of a push subscription (RFC 8291 section 3): raw bytes."""

    p256dh: bytes
    """The user agent's public key, 65 bytes uncompressed P-256."""
    auth: bytes
    """The authentication secret, 16 bytes."""


class Device(Struct, frozen=True):
    """A row of the registry; active unless deactivated or evicted."""

    app: AppId
    user_id: UserId
    device_id: DeviceId
    platform: Platform
    token: str
    """The provider token, or the endpoint URL of a push subscription; a secret."""
    registered_at: Instant
    last_seen_at: Instant
    """The last registration call, also one that repeated the same token."""
    token_updated_at: Instant
    """Moves only when the token changed."""
    last_used_at: Instant | None = None
    """The last registration or successful send."""
    keys: SubscriptionKeys | None = None
    app_version: str | None = None
    os_version: str | None = None
    locale: str | None = None
    active: bool = True

    @property
    def channel(self) -> Channel | None:
        """The channel that reaches this device; None where the platform is unknown."""
        return CHANNEL_OF_PLATFORM.get(self.platform)


class Registration(Struct, frozen=True):
    """What an app says of itself at launch: an upsert of one device."""

    app: AppId
    user_id: UserId
    device_id: DeviceId
    platform: Platform
    token: str
    keys: SubscriptionKeys | None = None
    app_version: str | None = None
    os_version: str | None = None
    locale: str | None = None
