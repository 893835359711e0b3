"""What is asked and answered, for type checkers: each is a plain dict, named as in the API's own document."""

from typing import Any, Literal, NotRequired, TypedDict

Json = dict[str, Any]

NotificationStatus = Literal[
    "scheduled", "pending", "processing", "sent", "partial", "delivered", "failed", "expired", "suppressed",
    "cancelled", "no_targets", "deduplicated", "unknown",
]  # fmt: skip
DeliveryStatus = Literal[
    "pending", "sent", "delivered", "opened", "failed", "expired", "suppressed", "cancelled", "unknown"
]


class SubmittedAction(TypedDict):
    """A button; its id is passed to the app when it is pressed."""

    id: str
    title: str
    link: NotRequired[str]
    icon: NotRequired[str]


class SubmittedBroadcast(TypedDict):
    """An audience that the provider itself distributes to."""

    channel: str
    kind: str
    name: str


class SubmittedKeys(TypedDict):
    """The keys of a push subscription as ``PushSubscription.getKey`` gives them: base64url."""

    p256dh: str
    auth: str


class SubmittedSubscription(TypedDict):
    """A browser's subscription as ``PushSubscription.toJSON()`` gives it."""

    endpoint: str
    keys: SubmittedKeys
    expirationTime: NotRequired[float | None]


class SubmittedAddress(TypedDict):
    """A device named by its token, whoever's it is: ``token`` (and ``keys``), or ``subscription``."""

    platform: str
    token: NotRequired[str]
    keys: NotRequired[SubmittedKeys]
    subscription: NotRequired[SubmittedSubscription]


class SubmittedVariant(TypedDict):
    """A variant: the texts that it has in place of those beside it."""

    name: str
    weight: NotRequired[int]
    title: NotRequired[str]
    subtitle: NotRequired[str]
    body: NotRequired[str]
    image: NotRequired[str]
    icon: NotRequired[str]
    link: NotRequired[str]


class SubmittedTemplate(TypedDict):
    """The template that says it; without a version, the one that is published when the submission is accepted."""

    name: str
    version: NotRequired[int]


SubmittedStep = TypedDict(
    "SubmittedStep",
    {"to": str, "until": NotRequired[Literal["sent", "delivered", "opened"]], "for": NotRequired[str]},
)
"""A channel that those after it wait for, ``for`` such a time as ``30s``."""


class Submission(TypedDict, total=False):
    """A notification to send: ``user_id``, ``device`` or ``to``, and a title, a body or data."""

    user_id: str
    to: SubmittedBroadcast
    device: SubmittedAddress
    device_ids: list[str]
    kind: Literal["visible", "silent"]
    urgency: Literal["critical", "high", "normal", "low"]
    title: str
    subtitle: str
    body: str
    data: Json
    image: str
    icon: str
    link: str
    actions: list[SubmittedAction]
    sound: str
    badge: int
    category: str
    thread: str
    android_channel: str
    collapse_key: str
    ttl: int
    scheduled_at: str
    send_at: str
    idempotency_key: str
    dedup_window: int
    guarantee: Literal["at_least_once", "at_most_once"]
    overrides: dict[str, Json]
    push_type: str
    retry_policy: str
    channels: list[str | SubmittedStep]
    type: str
    webhook_url: str
    tags: list[str]
    campaign: str
    variants: list[SubmittedVariant]
    holdout: int
    template: SubmittedTemplate
    variables: Json
    locale: str


class Submitted(TypedDict):
    """An accepted notification, or the earlier one that it duplicates."""

    id: str
    status: NotificationStatus
    content_hash: str
    deduplicated: bool
    record_id: NotRequired[str]


class Problem(TypedDict):
    """The refusal of one item, as ApiError has it for a whole request."""

    type: str
    title: str
    status: int
    code: str
    detail: str
    faults: NotRequired[list[dict[str, str]]]
    retry_after: NotRequired[int]


class BatchResult(TypedDict, total=False):
    """The result of one item: either *notification*, or the *error* that refused this item alone."""

    notification: Submitted
    error: Problem


class BatchAnswer(TypedDict):
    """The results of a batch, one per item, in order."""

    accepted: int
    deduplicated: int
    refused: int
    results: list[BatchResult]


class AttemptView(TypedDict):
    """One attempt: what the provider answered, and to which token (as a hash)."""

    at: str
    status: str
    code: str
    message: str
    token_hash: str
    credential: str


class ReceiptView(TypedDict):
    """The outcome of a notification on one device."""

    n: int
    device_id: str
    channel: str | None
    status: DeliveryStatus
    attempt_count: int
    retries: int
    next_retry_at: str | None
    parked: str | None
    provider_id: str | None
    code: str | None
    failure_class: Literal["retryable", "terminal"] | None
    reason: str | None
    dead: bool
    first_attempt_at: str | None
    last_attempt_at: str | None
    sent_at: str | None
    resolved_at: str | None
    attempts: list[AttemptView]
    credential: str | None


class NotificationSummary(TypedDict):
    """A notification without its content."""

    id: str
    status: NotificationStatus
    user_id: NotRequired[str]
    caller: NotRequired[str]
    kind: NotRequired[Literal["visible", "silent"]]
    urgency: NotRequired[Literal["critical", "high", "normal", "low"]]
    lane: NotRequired[Literal["critical", "high", "normal", "low", "bulk", "silent"]]
    guarantee: NotRequired[Literal["at_least_once", "at_most_once"]]
    created_at: str
    expires_at: NotRequired[str]
    scheduled_at: str | None
    finished_at: str | None
    reason: str | None
    duplicate_of: str | None
    round: int
    recorded: bool
    archived: NotRequired[bool]


class NotificationView(TypedDict):
    """A notification with its content and everything that happened to it."""

    notification: NotificationSummary
    device_ids: list[str]
    content: Json
    receipts: list[ReceiptView]
    duplicates: list[str]
    words: NotRequired[Json]


class NotificationPage(TypedDict):
    """Notifications, newest first."""

    items: list[NotificationSummary]
    next: str | None


class Cancellation(TypedDict):
    """The result of a cancellation: deliveries stopped, and those that are with a provider or settled."""

    id: str
    result: Literal["cancelled", "cancelling"]
    cancelled: int
    handed_over: int


class Replayed(TypedDict):
    """A new round has begun."""

    id: str
    status: NotRequired[NotificationStatus]


class DeadLetterView(TypedDict):
    """A delivery that failed for good."""

    notification: NotificationSummary
    receipt: ReceiptView


class DeadPage(TypedDict):
    """Dead letters, newest first."""

    items: list[DeadLetterView]
    next: str | None


class EntryView(TypedDict):
    """An entry of a feed: what the app shows, and what its user did with it."""

    id: str
    type: str | None
    urgency: str
    title: str | None
    subtitle: str | None
    body: str | None
    data: dict[str, Any]
    image: str | None
    icon: str | None
    link: str | None
    actions: list[SubmittedAction]
    category: str | None
    thread: str | None
    tags: list[str]
    shown_at: str
    seen_at: str | None
    read_at: str | None
    archived_at: str | None


class FeedView(TypedDict):
    """A page of a feed, newest first, with the counts of all of it."""

    unread: int
    unseen: int
    items: list[EntryView]
    next: str | None


class SubmittedDevice(TypedDict):
    """A device to register."""

    platform: str
    token: NotRequired[str]
    keys: NotRequired[SubmittedKeys]
    subscription: NotRequired[SubmittedSubscription]
    expiration_time: NotRequired[float]
    app_version: NotRequired[str]
    os_version: NotRequired[str]
    locale: NotRequired[str]
    token_use: NotRequired[str]


class DeviceView(TypedDict):
    """A device; its token is secret, so only a hash is shown."""

    user_id: str
    device_id: str
    platform: str
    token_hash: str
    active: bool
    registered_at: str
    last_seen_at: str
    last_used_at: str | None
    token_updated_at: str
    app_version: str | None
    os_version: str | None
    locale: str | None
    token_use: str


class RegisteredDevice(TypedDict):
    """A device after registration, and those that the cap per user deactivated."""

    device: DeviceView
    created: bool
    pushed_out: list[str]


class DeviceList(TypedDict):
    """A user's devices, newest registration first."""

    items: list[DeviceView]
