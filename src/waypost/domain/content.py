"""Content: the text and data of a notification, whoever it is for."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from waypost.domain.audience import Audience
from waypost.domain.channel import Channel
from waypost.domain.channel_steps import ChannelStep
from waypost.domain.variants import Split
from waypost.domain.words import Words


class Kind(Words):
    """The kind of a notification: visible to the user, or waking the app silently."""

    VISIBLE = "visible"
    SILENT = "silent"


class Urgency(Words):
    """The urgency that the caller asks for; maps to provider priorities (requirements S1-T1)."""

    CRITICAL = "critical"
    HIGH = "high"
    NORMAL = "normal"
    LOW = "low"


class ApnsPushType(Words):
    """Apple's ``apns-push-type``, where it is other than ``alert`` or ``background``."""

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


class TemplateUse(Struct, frozen=True, omit_defaults=True):
    """A template with the variables of one notification: its texts are made when they are sent."""

    name: str
    version: int
    variables: dict[str, Any] = {}
    locale: str | None = None
    """The locale that the caller asks for; None is the user's own."""


class Content(Struct, frozen=True, omit_defaults=True):
    """The content of a notification; stored once, rendered once per channel."""

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
    """The push type, where it is for Apple devices alone, and no ordinary alert."""
    to: Audience | None = None
    """The audience, where it is for all who listen, and for no user's devices."""
    channels: tuple[ChannelStep, ...] = ()
    """The channels that it is for, in order; empty is every channel of push."""
    type: str | None = None
    """What sort of message it is, in the app's own words; for its history, not for devices."""
    webhook_url: str | None = None
    """The URL that is told of its status changes; a secret."""
    tags: tuple[str, ...] = ()
    """What it is about, in the app's own words: by each its user's feed can be listed."""
    campaign: str | None = None
    """The name under which its results are counted, in the app's own words."""
    split: Split | None = None
    """The variants of what is said to many; None in what is said to one."""
    variant: str | None = None
    """The variant that this is."""
    template: TemplateUse | None = None
    """The template that says what title, body and the other texts are."""
    trace: str | None = None
    """The place in the trace of its acceptance; None where that is not traced."""


UNREADABLE = Content(category="unreadable")
"""This very object stands where stored content cannot be read: such a notification is shown, and never sent."""
