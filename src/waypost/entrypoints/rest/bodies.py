"""Request bodies: their types."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Raw, Struct
from msgspec.structs import replace

from waypost.domain.device import Registration, TokenUse
from waypost.domain.ids import AppId, DeviceId, UserId
from waypost.domain.submission import Identity, Locale, Moment, Seconds, Submission
from waypost.domain.submitted_device import SubmittedAddress, registration_of
from waypost.domain.text import NO_NUL, Text
from waypost.domain.time import Instant
from waypost.entrypoints.submitting import BATCH_LIMIT

IdText = Annotated[
    str,
    Meta(pattern="^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$", min_length=36, max_length=36),
]
PrefixText = Annotated[str, Meta(pattern=r"^wp_[a-z2-7]{8}(?!\n)$", min_length=11, max_length=11)]


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


class SubmittedDevice(SubmittedAddress, frozen=True, forbid_unknown_fields=True):
    """A device registration."""

    expiration_time: Annotated[
        float | None,
        Meta(
            description="`expirationTime` of a push subscription, UNIX milliseconds: refused where it has passed. Not "
            "kept: that a subscription has ended is learned from its push service.",
        ),
    ] = None
    app_version: Text | None = None
    os_version: Text | None = None
    locale: Locale | None = None
    token_use: Annotated[
        TokenUse, Meta(description="The use of an iOS token; live activities and calls have their own tokens.")
    ] = TokenUse.ALERT

    def registration(self, app: AppId, user_id: UserId, device_id: DeviceId, now: Instant) -> Registration:
        """Build the registration of it; InvalidRequest as ``registration_of``."""
        return replace(
            registration_of(app, user_id, device_id, self, now),
            app_version=self.app_version,
            os_version=self.os_version,
            locale=self.locale,
            token_use=self.token_use,
        )
