"""Request bodies: their types."""

from __future__ import annotations

import base64
import binascii
from typing import Annotated

from msgspec import Meta, Raw, Struct

from waypost.domain.device import Platform, SubscriptionKeys, TokenUse
from waypost.domain.submission import Identity, Moment, Seconds, Submission
from waypost.domain.text import NO_NUL, Text
from waypost.entrypoints.submitting import BATCH_LIMIT

PLATFORM_REF = "#/components/schemas/Platform"
"""The schema of a platform; which ones there are is known when the application is put together (`app`)."""

IdText = Annotated[
    str,
    Meta(pattern="^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$", min_length=36, max_length=36),
]
Base64Url = Annotated[str, Meta(pattern="^[A-Za-z0-9_-]+={0,2}$", max_length=128)]

PrefixText = Annotated[str, Meta(pattern=r"^wp_[a-z2-7]{8}(?!\n)$", min_length=11, max_length=11)]

PlatformName = Annotated[
    Platform, Meta(max_length=32, pattern=NO_NUL, extra_json_schema={"$ref": PLATFORM_REF, "examples": ["ios"]})
]
TokenText = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=4096,
        pattern=r"^[\x21-\x7e]+(?!\n)$",
        description="What the platform's provider gave: a device token (APNs: in hex), or the endpoint URL of a "
        "push subscription.",
    ),
]


class Batch(Struct, frozen=True, forbid_unknown_fields=True):
    """Up to 1,000 notifications, each accepted or refused by itself."""

    notifications: Annotated[tuple[Submission, ...], Meta(min_length=1, max_length=BATCH_LIMIT)]


class RawBatch(Struct, frozen=True, forbid_unknown_fields=True):
    """A batch whose items are still to be read one by one."""

    notifications: Annotated[tuple[Raw, ...], Meta(min_length=1, max_length=BATCH_LIMIT)]


class ReplayOrder(Struct, frozen=True, forbid_unknown_fields=True):
    """Options of a replay; the body may be omitted."""

    ttl: Annotated[
        Seconds | None, Meta(description="Seconds for which the new round is worthwhile; the app's default if omitted.")
    ] = None


class DeadFilter(Struct, frozen=True, forbid_unknown_fields=True):
    """A filter of dead letters; an empty one selects all of them."""

    code: Annotated[Text | None, Meta(description="The provider's own error code, such as `BadDeviceToken`.")] = None
    user_id: Identity | None = None
    since: Annotated[Moment | None, Meta(description="Resolved at or after this time (RFC 3339).")] = None


class DeadReplayOrder(Struct, frozen=True, forbid_unknown_fields=True):
    """The dead letters to replay: either *ids*, or a page of those that match *filter*."""

    ids: Annotated[tuple[IdText, ...], Meta(min_length=1, max_length=BATCH_LIMIT)] | None = None
    filter: DeadFilter | None = None
    cursor: Annotated[str, Meta(max_length=128, pattern=NO_NUL, description="`next` of the answer before.")] | None = (
        None
    )
    limit: Annotated[
        int, Meta(ge=1, le=BATCH_LIMIT, description="The most dead letters of one page of the filter.")
    ] = 500
    ttl: Seconds | None = None


class SubmittedKeys(Struct, frozen=True, forbid_unknown_fields=True):
    """The keys as ``PushSubscription.getKey`` gives them: base64url."""

    p256dh: Base64Url
    auth: Base64Url


class SubmittedDevice(Struct, frozen=True, forbid_unknown_fields=True):
    """A device registration."""

    platform: PlatformName
    token: TokenText
    keys: Annotated[SubmittedKeys | None, Meta(description="The keys of a push subscription (platform `web`).")] = None
    expiration_time: Annotated[
        float | None,
        Meta(
            description="`expirationTime` of a push subscription, UNIX milliseconds: refused where it has passed. Not "
            "kept: that a subscription has ended is learned from its push service.",
        ),
    ] = None
    app_version: Text | None = None
    os_version: Text | None = None
    locale: Annotated[str, Meta(max_length=35, pattern=r"^[A-Za-z0-9_-]+(?!\n)$", examples=["de-CH"])] | None = None
    token_use: Annotated[
        TokenUse, Meta(description="The use of an iOS token; live activities and calls have their own tokens.")
    ] = TokenUse.ALERT


def subscription_keys(keys: SubmittedKeys) -> SubscriptionKeys:
    """Decode the keys; what is not base64url becomes no bytes, which no channel takes for a key."""
    return SubscriptionKeys(_base64url(keys.p256dh), _base64url(keys.auth))


def _base64url(text: str) -> bytes:
    stripped = text.rstrip("=")
    try:
        return base64.b64decode(stripped + "=" * (-len(stripped) % 4), altchars=b"-_", validate=True)
    except binascii.Error:
        return b""
