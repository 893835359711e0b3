"""A submission: the request of a caller, and whether it makes sense."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Annotated, Any, NewType

from msgspec import Meta, Struct

from waypost.domain.best_time import SendAt, send_at_faults
from waypost.domain.channel import Channel
from waypost.domain.channel_steps import ChannelName, SubmittedChannels, SubmittedStep
from waypost.domain.content import ApnsPushType, Kind, Urgency
from waypost.domain.errors import Fault
from waypost.domain.notification import Guarantee
from waypost.domain.retry import POLICIES
from waypost.domain.storable import why_unstorable
from waypost.domain.submitted_device import SubmittedAddress
from waypost.domain.text import Text
from waypost.domain.time import DAY_MS
from waypost.domain.variants import HOLDOUT, HOLDOUT_LIMIT, VARIANTS_LIMIT, WEIGHT_LIMIT

STORED_LIMIT_BYTES = 64 * 1024
TTL_LIMIT_S = 28 * 86_400
"""The longest any of the providers keeps a message (FCM: 2,419,200 s)."""
SCHEDULE_LIMIT_MS = 366 * DAY_MS

NO_CONTROLS = r"^[^\x00-\x1f\x7f]+(?!\n)$"
"""The pattern of text without control characters; ``$`` alone would let a last newline through."""
Identity = Annotated[str, Meta(min_length=1, max_length=128, pattern=NO_CONTROLS)]
Line = Annotated[str, Meta(max_length=256)]
Word = Annotated[str, Meta(min_length=1, max_length=128)]
"""A short text of the content, which is kept as it came, control characters too."""
TypeName = Annotated[str, Meta(min_length=1, max_length=50, pattern=NO_CONTROLS)]
Tags = Annotated[
    tuple[Annotated[str, Meta(min_length=1, max_length=50, pattern=NO_CONTROLS)], ...],
    Meta(max_length=20, description="Your own words for what it is about; the feed is listed by each."),
]
NotificationType = NewType("NotificationType", TypeName)
Link = Annotated[str, Meta(min_length=1, max_length=2048, pattern=r"^[^\s\x00-\x1f\x7f]+(?!\n)$")]

Seconds = Annotated[int, Meta(ge=0, le=TTL_LIMIT_S)]
Badge = Annotated[int, Meta(ge=0, le=99_999)]
Moment = Annotated[datetime, Meta(tz=True)]
Locale = Annotated[str, Meta(max_length=35, pattern=r"^[A-Za-z0-9_-]+(?!\n)$", examples=["de-CH"])]
TemplateName = Annotated[
    str, Meta(min_length=1, max_length=64, pattern=r"^[a-z0-9][a-z0-9._-]*(?!\n)$", examples=["order-shipped"])
]
IdempotencyKey = Annotated[str, Meta(min_length=1, max_length=255, pattern=r"^[\x21-\x7e]+(?!\n)$")]


class SubmittedAction(Struct, frozen=True, forbid_unknown_fields=True):
    """A button; its id is passed to the app when it is pressed."""

    id: Word
    title: Word
    link: Link | None = None
    icon: Link | None = None


VariantName = Annotated[str, Meta(min_length=1, max_length=50, pattern=NO_CONTROLS, examples=["short"])]
CampaignName = Annotated[str, Meta(min_length=1, max_length=100, pattern=NO_CONTROLS, examples=["spring-sale"])]


class SubmittedVariant(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A variant: the texts that it has in place of those beside it."""

    name: VariantName
    weight: Annotated[int, Meta(ge=1, le=WEIGHT_LIMIT, description="Its share of the users, beside the others'.")] = 1
    title: Line | None = None
    subtitle: Line | None = None
    body: str | None = None
    image: Link | None = None
    icon: Link | None = None
    link: Link | None = None


SubmittedVariants = Annotated[
    tuple[SubmittedVariant, ...],
    Meta(
        max_length=VARIANTS_LIMIT,
        description="What is said to one part of the users in place of the texts; the first is what others are compared"
        " with. A user has the same variant of a `campaign` each time.",
    ),
]
Holdout = Annotated[
    int, Meta(ge=0, le=HOLDOUT_LIMIT, description="Percent of the users who are told nothing, for comparison.")
]


class SubmittedBroadcast(Struct, frozen=True, forbid_unknown_fields=True):
    """An audience that the provider itself distributes to."""

    channel: Annotated[Text, Meta(examples=["fcm"])]
    kind: Annotated[
        Text, Meta(description="`topic`, `condition` or `group` of fcm, `channel` of apns.", examples=["topic"])
    ]
    name: Annotated[str, Meta(min_length=1, max_length=1024, pattern=NO_CONTROLS, examples=["news"])]


class SubmittedTemplate(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The template that says it."""

    name: TemplateName
    version: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(description="Omitted: the one that is published when the submission is accepted."),
    ] = None


class Submission(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The body of ``POST /v1/notifications``."""

    user_id: Annotated[
        Identity | None, Meta(description="The recipient; omitted if `to` or `device` is given.", examples=["user-1"])
    ] = None
    to: Annotated[SubmittedBroadcast | None, Meta(description="An audience at a provider, in place of a user.")] = None
    device: Annotated[
        SubmittedAddress | None,
        Meta(description="One device by its token, in place of a user. A token that nobody has registered is kept."),
    ] = None
    device_ids: Annotated[
        tuple[Identity, ...], Meta(max_length=50, description="Restricts delivery to these devices of the user.")
    ] = ()
    kind: Kind = Kind.VISIBLE
    urgency: Annotated[
        Urgency, Meta(description="`low` waits until it suits the battery; all else that is shown comes at once.")
    ] = Urgency.NORMAL
    title: Annotated[Line | None, Meta(examples=["Your parcel is here"])] = None
    subtitle: Line | None = None
    body: Annotated[str | None, Meta(examples=["Left at the front door."])] = None
    data: Annotated[dict[str, Any], Meta(description="Any JSON object, passed to the app.")] = {}
    image: Link | None = None
    icon: Link | None = None
    link: Annotated[Link | None, Meta(description="The URL that a tap opens.")] = None
    actions: Annotated[tuple[SubmittedAction, ...], Meta(max_length=8)] = ()
    sound: Word | None = None
    badge: Badge | None = None
    category: Word | None = None
    thread: Annotated[Word | None, Meta(description="Groups notifications on the device.")] = None
    android_channel: Word | None = None
    collapse_key: Annotated[
        Word | None,
        Meta(
            description="A newer notification replaces an older one of the user with the same key:"
            " unsent it is cancelled, sent it is replaced on the device."
        ),
    ] = None
    ttl: Annotated[
        Seconds | None, Meta(description="Seconds for which sending is worthwhile; 0 means one attempt, now.")
    ] = None
    scheduled_at: Annotated[Moment | None, Meta(description="The earliest time of sending (RFC 3339).")] = None
    send_at: Annotated[
        SendAt | None,
        Meta(
            description="The earliest time of sending on the user's clock, in the zone of their profile; `best` is the"
            " hour in which they read most, `best 09:00-21:00` one in this window."
        ),
    ] = None
    idempotency_key: IdempotencyKey | None = None
    dedup_window: Annotated[
        Seconds | None,
        Meta(description="Seconds within which the same submission is not sent again; 0 turns this off."),
    ] = None
    guarantee: Guarantee = Guarantee.AT_LEAST_ONCE
    overrides: Annotated[
        dict[Channel, dict[str, Any]],
        Meta(
            description="Provider-specific fields, passed through unchanged.",
            extra_json_schema={"propertyNames": {"$ref": "#/components/schemas/Channel"}},
        ),
    ] = {}
    push_type: Annotated[
        ApnsPushType | None,
        Meta(
            description="For Apple devices only: the push type, if it is not an ordinary notification (such as a "
            "live activity)."
        ),
    ] = None
    retry_policy: Text | None = None
    channels: Annotated[
        SubmittedChannels,
        Meta(
            description="The channels to send by, side by side, or in steps of which each waits for the one before. "
            "`push` is every channel that reaches an app or a browser, and the default.",
            examples=[["push", "email"], [{"to": "push", "until": "delivered", "for": "30s"}, "sms"]],
        ),
    ] = ()
    type: Annotated[
        TypeName | None, Meta(description="Your own name for the type of message.", examples=["promotion"])
    ] = None
    webhook_url: Annotated[
        Link | None,
        Meta(
            description="The URL that status changes of this notification are POSTed to, in place of the app's.",
            examples=["https://shop.example/waypost"],
        ),
    ] = None
    tags: Tags = ()
    campaign: Annotated[
        CampaignName | None, Meta(description="Your own name for what its results are counted under.")
    ] = None
    variants: SubmittedVariants = ()
    holdout: Holdout = 0
    template: Annotated[
        SubmittedTemplate | None, Meta(description="The template that says it, in place of title and body.")
    ] = None
    variables: Annotated[dict[str, Any], Meta(description="The values for the template.")] = {}
    locale: Annotated[
        Locale | None, Meta(description="The language of the template's texts. Omitted: the user's own.")
    ] = None


class ContentSubmission(Submission, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A submission by the notify API: the same title, body and data are sent to a user once within a day.

    An app's own windows come before the day.
    """


class Defaults(Struct, frozen=True):
    """An app's values for what a caller leaves out."""

    ttl_s: Seconds = 86_400
    """Seconds for which sending is worthwhile."""
    dedup_window_s: Seconds | None = None
    """Seconds within which the same submission is not sent again. 0 or unset: off; unset at the notify API: a day."""
    dedup_windows_s: dict[NotificationType, Seconds] = {}
    """The same for one `type`. Unset: 300 at most for `otp` and `payment`."""

    channels: SubmittedChannels = ()
    """Channels of submissions that name none: `[push, email]` side by side, `[{to: push, for: 30s}, sms]` in steps.
    Unset: every app and browser."""
    channels_by_type: dict[NotificationType, SubmittedChannels] = {}
    """The same for one `type`."""
    locale: Locale | None = None
    """The language of templates for users of whom none is known. Unset: each template's own default."""

    def ttl_of(self, kind: str | None) -> int:
        """Return the time to live of a submission of the type *kind* that says none, seconds."""
        return self.ttl_s

    def channels_of(self, kind: str | None) -> tuple[ChannelName | SubmittedStep, ...]:
        """Return the channels of a submission of the type *kind* that names none."""
        return self.channels if kind is None else self.channels_by_type.get(NotificationType(kind), self.channels)

    @property
    def has_windows(self) -> bool:
        """Whether a type of notifications has a window here."""
        return bool(self.dedup_window_s or self.dedup_windows_s)

    def window_s(self, kind: str | None, unset: int = 0) -> int:
        """Return the window of notifications of the type *kind*, seconds; *unset* where the app says nothing."""
        said = self.dedup_windows_s.get(NotificationType(kind)) if kind is not None else None
        usual = unset if self.dedup_window_s is None else self.dedup_window_s
        return min(usual, _SHORT_WINDOWS_S.get(kind, usual)) if said is None else said


class TypedDefaults(Defaults, frozen=True):
    """An app's values, with those that its types declare themselves."""

    ttls_s: dict[NotificationType, Seconds] = {}

    def ttl_of(self, kind: str | None) -> int:
        """See Defaults."""
        return self.ttl_s if kind is None else self.ttls_s.get(NotificationType(kind), self.ttl_s)


_SHORT_WINDOWS_S: dict[str | None, int] = {"otp": 300, "payment": 300}
"""The windows of types that may be meant when said again soon, such as a second code (requirements S1-137), s."""


def faults(submission: Submission) -> list[Fault]:
    """List everything wrong with a submission that its types cannot say; empty is good.

    What only one channel refuses, such as a key in its overrides, is that channel's to say (pipeline/intake).
    """
    found = [*_recipient_faults(submission), *_shown_faults(submission), *_template_faults(submission)]
    if submission.send_at is not None:
        found += _local_faults(submission, submission.send_at)
    if submission.push_type is not None and submission.push_type.kind is not submission.kind:
        found.append(Fault("push_type", f"{submission.push_type} needs the kind {submission.push_type.kind}"))
    if submission.retry_policy is not None and submission.retry_policy not in POLICIES:
        found.append(Fault("retry_policy", f"unknown; one of {', '.join(sorted(POLICIES))}"))
    for path, fields in (
        ("data", submission.data),
        ("overrides", submission.overrides),
        ("variables", submission.variables),
    ):
        why = why_unstorable(fields) if fields else None
        if why:
            found.append(Fault(path, why))
    if submission.device_ids and len(set(submission.device_ids)) != len(submission.device_ids):
        found.append(Fault("device_ids", "names a device twice"))
    return found


def variant_faults(submission: Submission) -> Iterator[Fault]:
    """List what is wrong with the split of the users among variants."""
    names = [each.name for each in submission.variants]
    if (names or submission.holdout) and submission.campaign is None:
        yield Fault("campaign", "required: who gets which variant follows from it and the user")
    if len(set(names)) != len(names):
        yield Fault("variants", "two have the same name")
    if HOLDOUT in names:
        yield Fault("variants", f"{HOLDOUT} is the name of those who are told nothing")
    if names and (submission.to is not None or submission.device is not None):
        yield Fault("variants", "are a user's; leave them out")
    if submission.holdout and not names:
        yield Fault("holdout", "needs variants: one is enough")


def _recipient_faults(submission: Submission) -> Iterator[Fault]:
    if submission.device is not None:
        if submission.user_id is not None or submission.to is not None:
            yield Fault("device", "stands in place of user_id and to; leave them out")
    elif submission.to is None:
        if submission.user_id is None:
            yield Fault("user_id", "required")
    elif submission.user_id is not None:
        yield Fault("to", "names everybody who listens; leave user_id out")
    if submission.channels and (submission.to is not None or submission.device is not None):
        yield Fault("channels", "are a user's; leave them out")
    if submission.device_ids and (submission.to is not None or submission.device is not None):
        yield Fault("device_ids", "are a user's")


def _local_faults(submission: Submission, send_at: str) -> Iterator[Fault]:
    if submission.scheduled_at is not None:
        yield Fault("send_at", "stands in place of scheduled_at; leave one out")
    elif submission.to is not None or submission.device is not None:
        yield Fault("send_at", "is a time of the user's clock: give user_id")
    yield from send_at_faults(send_at)


def _shown_faults(submission: Submission) -> Iterator[Fault]:
    if submission.push_type in _WITHOUT_PLACE:
        for name in _WITHOUT_PLACE[submission.push_type]:
            if getattr(submission, name) not in (None, ()):
                yield Fault(name, f"has no place in a push of the type {submission.push_type}")
    elif submission.kind is Kind.VISIBLE:
        if submission.template is None and not submission.title and not submission.body:
            yield Fault("title", "a visible notification needs a title or a body")
    else:
        for name in _SHOWN:
            if getattr(submission, name) not in (None, ()):
                yield Fault(name, "a silent notification shows nothing; leave it out or make the kind visible")


def _template_faults(submission: Submission) -> Iterator[Fault]:
    if submission.template is None:
        for name in ("variables", "locale"):
            if getattr(submission, name) not in (None, {}):
                yield Fault(name, "is for a template; name one")
        return
    if submission.kind is Kind.SILENT or submission.push_type in _WITHOUT_PLACE:
        yield Fault("template", "is for what is shown to people")
    for name in _TEXTS:
        if getattr(submission, name):
            yield Fault(name, "is what the template says; leave it out")
    if any(getattr(each, name) for each in submission.variants for name in _TEXTS):
        yield Fault("variants", "have no texts beside a template, which is given the variant's name as `variant`")


_TEXTS = ("title", "subtitle", "body")
_SHOWN = ("title", "subtitle", "body", "image", "icon", "link", "sound", "badge", "actions")
_WITHOUT_PLACE: dict[ApnsPushType | None, tuple[str, ...]] = {
    ApnsPushType.VOIP: _SHOWN,
    ApnsPushType.PUSHTOTALK: _SHOWN,
    ApnsPushType.LIVEACTIVITY: tuple(name for name in _SHOWN if name not in ("title", "body", "sound")),
}
"""The fields that push types cannot show which are visible without being an alert."""
