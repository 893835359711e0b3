"""A device as a caller describes it: a platform with a token, or a browser's subscription as it is."""

from __future__ import annotations

import base64
import binascii
from typing import Annotated

from msgspec import Meta, Struct, field
from msgspec.structs import replace

from waypost.domain.device import Platform, Registration, SubscriptionKeys, nobody_with
from waypost.domain.errors import Fault, InvalidRequest
from waypost.domain.ids import AppId, DeviceId, UserId, token_hash
from waypost.domain.text import NO_NUL
from waypost.domain.time import Instant

PLATFORM_REF = "#/components/schemas/Platform"
"""The schema of a platform; which ones there are is known when the application is put together (`app`)."""
Base64Url = Annotated[str, Meta(pattern="^[A-Za-z0-9_-]+={0,2}$", max_length=128)]
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


class SubmittedKeys(Struct, frozen=True, forbid_unknown_fields=True):
    """The keys as ``PushSubscription.getKey`` gives them: base64url."""

    p256dh: Base64Url
    auth: Base64Url


class SubmittedSubscription(Struct, frozen=True):
    """A browser's subscription as ``PushSubscription.toJSON()`` gives it; what it holds beside is ignored."""

    endpoint: TokenText
    keys: SubmittedKeys
    expiration_time: Annotated[
        float | None, Meta(description="UNIX milliseconds: refused where it has passed, else not kept.")
    ] = field(default=None, name="expirationTime")


class SubmittedAddress(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A device named by its token, whoever's it is."""

    platform: PlatformName
    token: TokenText | None = None
    keys: Annotated[SubmittedKeys | None, Meta(description="The keys of a push subscription (platform `web`).")] = None
    subscription: Annotated[
        SubmittedSubscription | None,
        Meta(description="In place of `token` and `keys`: a subscription as `PushSubscription.toJSON()` gives it."),
    ] = None


def registration_of(
    app: AppId, user_id: UserId, device_id: DeviceId, said: SubmittedAddress, now: Instant
) -> Registration:
    """Build the registration that *said* describes; InvalidRequest where it names no token, two, or one that ended."""
    token, keys, subscription = said.token, said.keys, said.subscription
    if subscription is not None:
        if token is not None or keys is not None:
            raise InvalidRequest((Fault("subscription", "stands in place of token and keys; leave them out"),))
        if subscription.expiration_time is not None and subscription.expiration_time <= now:
            raise InvalidRequest((Fault("subscription.expirationTime", "the subscription has ended already"),))
        token, keys = subscription.endpoint, subscription.keys
    if token is None:
        raise InvalidRequest((Fault("token", "required"),))
    return Registration(
        app=app,
        user_id=user_id,
        device_id=device_id,
        platform=said.platform,
        token=token,
        keys=None if keys is None else subscription_keys(keys),
    )


def ownerless(app: AppId, said: SubmittedAddress, now: Instant) -> Registration:
    """Build the registration of a token that no user has: it is a user of its own, named by the token's hash."""
    made = registration_of(app, UserId(""), DeviceId(""), said, now)
    return replace(made, user_id=nobody_with(made.token), device_id=DeviceId(token_hash(made.token).hex()))


def subscription_keys(keys: SubmittedKeys) -> SubscriptionKeys:
    """Decode the keys; what is not base64url becomes no bytes, which no channel takes for a key."""
    return SubscriptionKeys(_base64url(keys.p256dh), _base64url(keys.auth))


def _base64url(text: str) -> bytes:
    stripped = text.rstrip("=")
    try:
        return base64.b64decode(stripped + "=" * (-len(stripped) % 4), altchars=b"-_", validate=True)
    except binascii.Error:
        return b""
