"""A device: one installation of one app by one user."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NewType

from msgspec import Struct

from waypost.domain.channel import APNS
from waypost.domain.content import ApnsPushType, Content
from waypost.domain.errors import Fault
from waypost.domain.ids import AppId, DeviceId, UserId, token_hash
from waypost.domain.time import HOUR_MS, Instant
from waypost.domain.words import Words

Platform = NewType("Platform", str)
"""The platform that a device runs, or by which it is subscribed; the plug-in that serves it names it."""

UNKNOWN: Final = Platform("unknown")
"""Comes from imports only: no plug-in may serve it, and such a device is skipped with a reason."""
PHONE: Final = Platform("phone")
EMAIL: Final = Platform("email")
URL: Final = Platform("url")
CONTACTS: Final = frozenset({PHONE, EMAIL, URL})
"""The platforms whose tokens are addresses of people: several users may have the same, and no cap counts them."""


def contact_id(platform: Platform) -> DeviceId:
    """Return the device id of a user's contact of *platform*: one that no app gives a device."""
    return DeviceId(f"contact:{platform}")


class TokenUse(Words):
    """The use of an Apple device's token; each use has its own tokens."""

    ALERT = "alert"
    """Ordinary notifications, visible and silent."""
    LOCATION = "location"
    VOIP = "voip"
    COMPLICATION = "complication"
    FILEPROVIDER = "fileprovider"
    LIVEACTIVITY = "liveactivity"
    """Tokens of one live activity, to update and end it."""
    LIVEACTIVITY_START = "liveactivity_start"
    """Tokens of the app, to start a live activity."""
    PUSHTOTALK = "pushtotalk"
    WIDGETS = "widgets"
    CONTROLS = "controls"
    MDM = "mdm"
    """Tokens of the management of a device, from its check-in."""


def token_use_of(content: Content) -> TokenUse:
    """Find out which use of tokens *content* is for, from its push type."""
    if content.push_type is None:
        return TokenUse.ALERT
    match content.push_type:
        case ApnsPushType.ALERT | ApnsPushType.BACKGROUND:
            return TokenUse.ALERT
        case ApnsPushType.LIVEACTIVITY if _event_of(content) == "start":
            return TokenUse.LIVEACTIVITY_START
        case push_type:
            return TokenUse(push_type.value)


def _event_of(content: Content) -> object:
    aps = content.overrides.get(APNS, {}).get("aps")
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
    """The last registration or successful send, to the hour."""
    keys: SubscriptionKeys | None = None
    app_version: str | None = None
    os_version: str | None = None
    locale: str | None = None
    active: bool = True
    token_use: TokenUse | str = TokenUse.ALERT
    """The use of its token; text where a newer version wrote a word that this one does not know: nothing is for it."""

    @property
    def token_hash(self) -> bytes:
        """The hash by which it is found: no two active devices of an app have the same."""
        return _hash_of(self.platform, self.user_id, self.token)


USE_NOTED_MS = HOUR_MS
"""Milliseconds after the last noted use until another one is noted: a row is not written for each delivery."""


def is_news(device: Device, used_at: Instant) -> bool:
    """Tell whether the registry should hear of a use: the first one after a registration, then one an hour."""
    noted_at = device.last_used_at
    return noted_at is None or noted_at <= device.last_seen_at or used_at - noted_at >= USE_NOTED_MS


class Registration(Struct, frozen=True):
    """A device as an app registers it at launch: inserted, or replacing the one of the same id."""

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

    @property
    def token_hash(self) -> bytes:
        """The hash that the device will be found by."""
        return _hash_of(self.platform, self.user_id, self.token)


def _hash_of(platform: Platform, user_id: UserId, token: str) -> bytes:
    """Hash a token; a contact's with its user, since several may share a mailbox or a telephone."""
    return token_hash(f"{token}\n{user_id}" if platform in CONTACTS else token)


def nobody_with(token: str) -> UserId:
    """Name the user of its own that a token is kept for until an app registers it."""
    return UserId(f"token:{token_hash(token).hex()}")


def registered(registration: Registration, before: Device | None, now: Instant) -> Device:
    """Build the device after a registration call, from what was stored before it."""
    same_token = before is not None and before.token == registration.token
    return Device(
        app=registration.app,
        user_id=registration.user_id,
        device_id=registration.device_id,
        platform=registration.platform,
        token=registration.token,
        registered_at=now if before is None else before.registered_at,
        last_seen_at=now,
        token_updated_at=before.token_updated_at if before is not None and same_token else now,
        last_used_at=now,
        keys=registration.keys,
        app_version=registration.app_version,
        os_version=registration.os_version,
        locale=registration.locale,
        token_use=registration.token_use,
    )


RegistrationCheck = Callable[[Registration], list[Fault]]
"""The check of a registration for what a channel could never send to; the faults are named as in the API."""


def registration_faults(registration: Registration, checks: Mapping[Platform, RegistrationCheck]) -> list[Fault]:
    """List what the channel of its platform could never send to; *checks* are those of all platforms."""
    check = checks.get(registration.platform)
    return check(registration) if check else [Fault("platform", f"must be one of {', '.join(sorted(checks))}")]


def has_no_keys(registration: Registration) -> list[Fault]:
    """Check that a device of a platform without keys gave none."""
    return [] if registration.keys is None else [Fault("keys", "only a push subscription has keys")]


def has_one_use(registration: Registration) -> list[Fault]:
    """Check that a device of a platform whose tokens have one use names no other."""
    if registration.token_use is TokenUse.ALERT:
        return []
    return [Fault("token_use", "only an iOS device has tokens for other uses")]


def is_token_alone(registration: Registration) -> list[Fault]:
    """Check the registration of a platform that knows a device by its token and nothing else."""
    return has_no_keys(registration) + has_one_use(registration)
