"""A device: one installation of one app by one user."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum

from msgspec import Struct

from waypost.domain.errors import Fault
from waypost.domain.ids import AppId, DeviceId, UserId
from waypost.domain.notification import ApnsPushType, Channel, Content
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


class TokenUse(StrEnum):
    """What a token of an Apple device is for: each use has tokens of its own."""

    ALERT = "alert"
    """Ordinary notifications, visible and silent."""
    LOCATION = "location"
    VOIP = "voip"
    COMPLICATION = "complication"
    FILEPROVIDER = "fileprovider"
    LIVEACTIVITY = "liveactivity"
    """Of one live activity, to update and end it."""
    LIVEACTIVITY_START = "liveactivity_start"
    """Of the app, to start a live activity."""
    PUSHTOTALK = "pushtotalk"
    WIDGETS = "widgets"
    CONTROLS = "controls"
    MDM = "mdm"
    """Of the management of a device, from its check-in."""


def token_use_of(content: Content) -> TokenUse:
    """Which tokens *content* is for."""
    match content.push_type:
        case None | ApnsPushType.ALERT | ApnsPushType.BACKGROUND:
            return TokenUse.ALERT
        case ApnsPushType.LIVEACTIVITY if _event_of(content) == "start":
            return TokenUse.LIVEACTIVITY_START
        case push_type:
            return TokenUse(push_type.value)


def _event_of(content: Content) -> object:
    aps = content.overrides.get(Channel.APNS, {}).get("aps")
    return aps.get("event") if isinstance(aps, dict) else None


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
    token_use: TokenUse = TokenUse.ALERT

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
    token_use: TokenUse = TokenUse.ALERT


RegistrationCheck = Callable[[Registration], list[Fault]]
"""What a channel could never send to, such as a key that is none; the faults are named as in the API."""
