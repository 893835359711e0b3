"""A notification: one thing to tell one recipient."""

from __future__ import annotations

import hashlib
from typing import Any, Final, NewType

from msgspec import Struct

from waypost.domain.ids import AppId, CallerId, DeviceId, NotificationId, UserId
from waypost.domain.time import Instant
from waypost.domain.words import Words


class Kind(Words):
    """Shown to the user, or waking the app without a trace on the screen."""

    VISIBLE = "visible"
    SILENT = "silent"


class Urgency(Words):
    """How much a caller wants it now; maps to provider priorities (requirements S1-T1)."""

    CRITICAL = "critical"
    HIGH = "high"
    NORMAL = "normal"
    LOW = "low"


class Lane(Words):
    """A class of work; lanes never wait for each other."""

    CRITICAL = "critical"
    HIGH = "high"
    NORMAL = "normal"
    LOW = "low"
    BULK = "bulk"
    SILENT = "silent"


class Guarantee(Words):
    """What a crash between sending and recording may do: repeat, or leave it unknown."""

    AT_LEAST_ONCE = "at_least_once"
    AT_MOST_ONCE = "at_most_once"


Channel = NewType("Channel", str)
"""How a target is reached; each is spoken by a sender, whose plug-in names it."""

APNS: Final = Channel("apns")
"""Named here because push types and token uses are its own, and part of every notification."""


class ApnsPushType(Words):
    """What Apple is told a push is (``apns-push-type``), where it is more than ``alert`` or ``background`` by kind."""

    ALERT = "alert"
    BACKGROUND = "background"
    LOCATION = "location"
    VOIP = "voip"
    COMPLICATION = "complication"
    FILEPROVIDER = "fileprovider"
    LIVEACTIVITY = "liveactivity"
    PUSHTOTALK = "pushtotalk"
    WIDGETS = "widgets"
    CONTROLS = "controls"
    MDM = "mdm"

    @property
    def kind(self) -> Kind:
        """The kind of the notifications that are sent as this."""
        return Kind.VISIBLE if self in _SEEN_OR_HEARD else Kind.SILENT


_SEEN_OR_HEARD = (ApnsPushType.ALERT, ApnsPushType.LIVEACTIVITY, ApnsPushType.VOIP, ApnsPushType.PUSHTOTALK)


class Action(Struct, frozen=True, omit_defaults=True):
    """A button under a visible notification."""

    id: str
    title: str
    link: str | None = None
    icon: str | None = None


LONGEST_LABEL = 128


class Broadcast(Struct, frozen=True):
    """Everybody who listens at a provider: it tells them all for one message (a topic, a broadcast channel)."""

    channel: Channel
    kind: str
    """In the words of the channel's plug-in, such as ``topic``."""
    name: str

    @property
    def token(self) -> str:
        """What the provider is told in place of a device's token."""
        return self.name

    @property
    def label(self) -> str:
        """What stands where a user and a device would: in histories, in receipts, and for the shard."""
        label = f"{self.channel}:{self.kind}:{self.name}"
        if len(label) <= LONGEST_LABEL:
            return label
        return f"{self.channel}:{self.kind}:{hashlib.sha256(self.name.encode()).hexdigest()}"


class Content(Struct, frozen=True, omit_defaults=True):
    """What is said; stored once, rendered once per channel."""

    title: str | None = None
    subtitle: str | None = None
    body: str | None = None
    data: dict[str, Any] = {}
    image: str | None = None
    icon: str | None = None
    link: str | None = None
    actions: tuple[Action, ...] = ()
    sound: str | None = None
    badge: int | None = None
    category: str | None = None
    thread: str | None = None
    android_channel: str | None = None
    collapse_key: str | None = None
    overrides: dict[Channel, dict[str, Any]] = {}
    """Provider fields that pass through untouched where they are valid."""
    push_type: ApnsPushType | None = None
    """Where it is for Apple devices alone, and no ordinary alert."""
    to: Broadcast | None = None
    """Where it is for all who listen, and for no user's devices."""
    type: str | None = None
    """What sort of message it is, in the app's own words; for its history, not for devices."""


UNREADABLE = Content(category="unreadable")
"""This very object stands where stored content cannot be read: such a notification is shown, and never sent."""


class Notification(Struct, frozen=True):
    """One thing to tell one recipient, as accepted."""

    id: NotificationId
    app: AppId
    caller: CallerId
    user_id: UserId
    content: Content
    created_at: Instant
    expires_at: Instant
    """The later of creation and ``scheduled_at``, plus the TTL."""
    ttl_ms: int
    """0 is one attempt now, with a provider TTL of 0."""
    lane: Lane
    kind: Kind = Kind.VISIBLE
    urgency: Urgency = Urgency.NORMAL
    guarantee: Guarantee = Guarantee.AT_LEAST_ONCE
    device_ids: tuple[DeviceId, ...] = ()
    """Narrowed to these devices of the user; empty is all."""
    scheduled_at: Instant | None = None
    retry_policy: str | None = None
    """A named policy that the caller chose; None is the app's for this urgency."""


def lane_of(kind: Kind, urgency: Urgency) -> Lane:
    """The lane a single notification travels in (bulk jobs choose theirs)."""
    return Lane.SILENT if kind is Kind.SILENT else _LANE_OF[urgency]


_LANE_OF = {urgency: Lane(urgency.value) for urgency in Urgency}
