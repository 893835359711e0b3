import datetime

from google.protobuf import struct_pb2 as _struct_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.rpc import status_pb2 as _status_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Kind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    KIND_UNSPECIFIED: _ClassVar[Kind]
    KIND_VISIBLE: _ClassVar[Kind]
    KIND_SILENT: _ClassVar[Kind]

class Urgency(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    URGENCY_UNSPECIFIED: _ClassVar[Urgency]
    URGENCY_CRITICAL: _ClassVar[Urgency]
    URGENCY_HIGH: _ClassVar[Urgency]
    URGENCY_NORMAL: _ClassVar[Urgency]
    URGENCY_LOW: _ClassVar[Urgency]

class Guarantee(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    GUARANTEE_UNSPECIFIED: _ClassVar[Guarantee]
    GUARANTEE_AT_LEAST_ONCE: _ClassVar[Guarantee]
    GUARANTEE_AT_MOST_ONCE: _ClassVar[Guarantee]

class PushType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PUSH_TYPE_UNSPECIFIED: _ClassVar[PushType]
    PUSH_TYPE_ALERT: _ClassVar[PushType]
    PUSH_TYPE_BACKGROUND: _ClassVar[PushType]
    PUSH_TYPE_LOCATION: _ClassVar[PushType]
    PUSH_TYPE_VOIP: _ClassVar[PushType]
    PUSH_TYPE_COMPLICATION: _ClassVar[PushType]
    PUSH_TYPE_FILEPROVIDER: _ClassVar[PushType]
    PUSH_TYPE_LIVEACTIVITY: _ClassVar[PushType]
    PUSH_TYPE_PUSHTOTALK: _ClassVar[PushType]
    PUSH_TYPE_WIDGETS: _ClassVar[PushType]
    PUSH_TYPE_CONTROLS: _ClassVar[PushType]
    PUSH_TYPE_MDM: _ClassVar[PushType]

class NotificationStatus(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    NOTIFICATION_STATUS_UNSPECIFIED: _ClassVar[NotificationStatus]
    NOTIFICATION_STATUS_SCHEDULED: _ClassVar[NotificationStatus]
    NOTIFICATION_STATUS_PENDING: _ClassVar[NotificationStatus]
    NOTIFICATION_STATUS_PROCESSING: _ClassVar[NotificationStatus]
    NOTIFICATION_STATUS_SENT: _ClassVar[NotificationStatus]
    NOTIFICATION_STATUS_PARTIAL: _ClassVar[NotificationStatus]
    NOTIFICATION_STATUS_DELIVERED: _ClassVar[NotificationStatus]
    NOTIFICATION_STATUS_FAILED: _ClassVar[NotificationStatus]
    NOTIFICATION_STATUS_EXPIRED: _ClassVar[NotificationStatus]
    NOTIFICATION_STATUS_SUPPRESSED: _ClassVar[NotificationStatus]
    NOTIFICATION_STATUS_CANCELLED: _ClassVar[NotificationStatus]
    NOTIFICATION_STATUS_NO_TARGETS: _ClassVar[NotificationStatus]
    NOTIFICATION_STATUS_DEDUPLICATED: _ClassVar[NotificationStatus]
    NOTIFICATION_STATUS_UNKNOWN: _ClassVar[NotificationStatus]

class DeliveryStatus(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    DELIVERY_STATUS_UNSPECIFIED: _ClassVar[DeliveryStatus]
    DELIVERY_STATUS_PENDING: _ClassVar[DeliveryStatus]
    DELIVERY_STATUS_SENT: _ClassVar[DeliveryStatus]
    DELIVERY_STATUS_DELIVERED: _ClassVar[DeliveryStatus]
    DELIVERY_STATUS_OPENED: _ClassVar[DeliveryStatus]
    DELIVERY_STATUS_FAILED: _ClassVar[DeliveryStatus]
    DELIVERY_STATUS_EXPIRED: _ClassVar[DeliveryStatus]
    DELIVERY_STATUS_SUPPRESSED: _ClassVar[DeliveryStatus]
    DELIVERY_STATUS_CANCELLED: _ClassVar[DeliveryStatus]
    DELIVERY_STATUS_UNKNOWN: _ClassVar[DeliveryStatus]
KIND_UNSPECIFIED: Kind
KIND_VISIBLE: Kind
KIND_SILENT: Kind
URGENCY_UNSPECIFIED: Urgency
URGENCY_CRITICAL: Urgency
URGENCY_HIGH: Urgency
URGENCY_NORMAL: Urgency
URGENCY_LOW: Urgency
GUARANTEE_UNSPECIFIED: Guarantee
GUARANTEE_AT_LEAST_ONCE: Guarantee
GUARANTEE_AT_MOST_ONCE: Guarantee
PUSH_TYPE_UNSPECIFIED: PushType
PUSH_TYPE_ALERT: PushType
PUSH_TYPE_BACKGROUND: PushType
PUSH_TYPE_LOCATION: PushType
PUSH_TYPE_VOIP: PushType
PUSH_TYPE_COMPLICATION: PushType
PUSH_TYPE_FILEPROVIDER: PushType
PUSH_TYPE_LIVEACTIVITY: PushType
PUSH_TYPE_PUSHTOTALK: PushType
PUSH_TYPE_WIDGETS: PushType
PUSH_TYPE_CONTROLS: PushType
PUSH_TYPE_MDM: PushType
NOTIFICATION_STATUS_UNSPECIFIED: NotificationStatus
NOTIFICATION_STATUS_SCHEDULED: NotificationStatus
NOTIFICATION_STATUS_PENDING: NotificationStatus
NOTIFICATION_STATUS_PROCESSING: NotificationStatus
NOTIFICATION_STATUS_SENT: NotificationStatus
NOTIFICATION_STATUS_PARTIAL: NotificationStatus
NOTIFICATION_STATUS_DELIVERED: NotificationStatus
NOTIFICATION_STATUS_FAILED: NotificationStatus
NOTIFICATION_STATUS_EXPIRED: NotificationStatus
NOTIFICATION_STATUS_SUPPRESSED: NotificationStatus
NOTIFICATION_STATUS_CANCELLED: NotificationStatus
NOTIFICATION_STATUS_NO_TARGETS: NotificationStatus
NOTIFICATION_STATUS_DEDUPLICATED: NotificationStatus
NOTIFICATION_STATUS_UNKNOWN: NotificationStatus
DELIVERY_STATUS_UNSPECIFIED: DeliveryStatus
DELIVERY_STATUS_PENDING: DeliveryStatus
DELIVERY_STATUS_SENT: DeliveryStatus
DELIVERY_STATUS_DELIVERED: DeliveryStatus
DELIVERY_STATUS_OPENED: DeliveryStatus
DELIVERY_STATUS_FAILED: DeliveryStatus
DELIVERY_STATUS_EXPIRED: DeliveryStatus
DELIVERY_STATUS_SUPPRESSED: DeliveryStatus
DELIVERY_STATUS_CANCELLED: DeliveryStatus
DELIVERY_STATUS_UNKNOWN: DeliveryStatus

class TemplateChoice(_message.Message):
    __slots__ = ("name", "version")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    name: str
    version: int
    def __init__(self, name: _Optional[str] = ..., version: _Optional[int] = ...) -> None: ...

class Submission(_message.Message):
    __slots__ = ("user_id", "to", "device_ids", "kind", "urgency", "title", "subtitle", "body", "data", "image", "icon", "link", "actions", "sound", "badge", "category", "thread", "android_channel", "collapse_key", "ttl", "scheduled_at", "idempotency_key", "dedup_window", "guarantee", "overrides", "push_type", "retry_policy", "type", "device", "channels", "webhook_url", "send_at", "campaign", "variants", "holdout", "tags", "template", "variables", "locale")
    class OverridesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: _struct_pb2.Struct
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ...) -> None: ...
    USER_ID_FIELD_NUMBER: _ClassVar[int]
    TO_FIELD_NUMBER: _ClassVar[int]
    DEVICE_IDS_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    URGENCY_FIELD_NUMBER: _ClassVar[int]
    TITLE_FIELD_NUMBER: _ClassVar[int]
    SUBTITLE_FIELD_NUMBER: _ClassVar[int]
    BODY_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    IMAGE_FIELD_NUMBER: _ClassVar[int]
    ICON_FIELD_NUMBER: _ClassVar[int]
    LINK_FIELD_NUMBER: _ClassVar[int]
    ACTIONS_FIELD_NUMBER: _ClassVar[int]
    SOUND_FIELD_NUMBER: _ClassVar[int]
    BADGE_FIELD_NUMBER: _ClassVar[int]
    CATEGORY_FIELD_NUMBER: _ClassVar[int]
    THREAD_FIELD_NUMBER: _ClassVar[int]
    ANDROID_CHANNEL_FIELD_NUMBER: _ClassVar[int]
    COLLAPSE_KEY_FIELD_NUMBER: _ClassVar[int]
    TTL_FIELD_NUMBER: _ClassVar[int]
    SCHEDULED_AT_FIELD_NUMBER: _ClassVar[int]
    IDEMPOTENCY_KEY_FIELD_NUMBER: _ClassVar[int]
    DEDUP_WINDOW_FIELD_NUMBER: _ClassVar[int]
    GUARANTEE_FIELD_NUMBER: _ClassVar[int]
    OVERRIDES_FIELD_NUMBER: _ClassVar[int]
    PUSH_TYPE_FIELD_NUMBER: _ClassVar[int]
    RETRY_POLICY_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    DEVICE_FIELD_NUMBER: _ClassVar[int]
    CHANNELS_FIELD_NUMBER: _ClassVar[int]
    WEBHOOK_URL_FIELD_NUMBER: _ClassVar[int]
    SEND_AT_FIELD_NUMBER: _ClassVar[int]
    CAMPAIGN_FIELD_NUMBER: _ClassVar[int]
    VARIANTS_FIELD_NUMBER: _ClassVar[int]
    HOLDOUT_FIELD_NUMBER: _ClassVar[int]
    TAGS_FIELD_NUMBER: _ClassVar[int]
    TEMPLATE_FIELD_NUMBER: _ClassVar[int]
    VARIABLES_FIELD_NUMBER: _ClassVar[int]
    LOCALE_FIELD_NUMBER: _ClassVar[int]
    user_id: str
    to: Broadcast
    device_ids: _containers.RepeatedScalarFieldContainer[str]
    kind: Kind
    urgency: Urgency
    title: str
    subtitle: str
    body: str
    data: _struct_pb2.Struct
    image: str
    icon: str
    link: str
    actions: _containers.RepeatedCompositeFieldContainer[Action]
    sound: str
    badge: int
    category: str
    thread: str
    android_channel: str
    collapse_key: str
    ttl: int
    scheduled_at: _timestamp_pb2.Timestamp
    idempotency_key: str
    dedup_window: int
    guarantee: Guarantee
    overrides: _containers.MessageMap[str, _struct_pb2.Struct]
    push_type: PushType
    retry_policy: str
    type: str
    device: DeviceAddress
    channels: _containers.RepeatedCompositeFieldContainer[ChannelStep]
    webhook_url: str
    send_at: str
    campaign: str
    variants: _containers.RepeatedCompositeFieldContainer[Variant]
    holdout: int
    tags: _containers.RepeatedScalarFieldContainer[str]
    template: TemplateChoice
    variables: _struct_pb2.Struct
    locale: str
    def __init__(self, user_id: _Optional[str] = ..., to: _Optional[_Union[Broadcast, _Mapping]] = ..., device_ids: _Optional[_Iterable[str]] = ..., kind: _Optional[_Union[Kind, str]] = ..., urgency: _Optional[_Union[Urgency, str]] = ..., title: _Optional[str] = ..., subtitle: _Optional[str] = ..., body: _Optional[str] = ..., data: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., image: _Optional[str] = ..., icon: _Optional[str] = ..., link: _Optional[str] = ..., actions: _Optional[_Iterable[_Union[Action, _Mapping]]] = ..., sound: _Optional[str] = ..., badge: _Optional[int] = ..., category: _Optional[str] = ..., thread: _Optional[str] = ..., android_channel: _Optional[str] = ..., collapse_key: _Optional[str] = ..., ttl: _Optional[int] = ..., scheduled_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., idempotency_key: _Optional[str] = ..., dedup_window: _Optional[int] = ..., guarantee: _Optional[_Union[Guarantee, str]] = ..., overrides: _Optional[_Mapping[str, _struct_pb2.Struct]] = ..., push_type: _Optional[_Union[PushType, str]] = ..., retry_policy: _Optional[str] = ..., type: _Optional[str] = ..., device: _Optional[_Union[DeviceAddress, _Mapping]] = ..., channels: _Optional[_Iterable[_Union[ChannelStep, _Mapping]]] = ..., webhook_url: _Optional[str] = ..., send_at: _Optional[str] = ..., campaign: _Optional[str] = ..., variants: _Optional[_Iterable[_Union[Variant, _Mapping]]] = ..., holdout: _Optional[int] = ..., tags: _Optional[_Iterable[str]] = ..., template: _Optional[_Union[TemplateChoice, _Mapping]] = ..., variables: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., locale: _Optional[str] = ...) -> None: ...

class Variant(_message.Message):
    __slots__ = ("name", "weight", "title", "subtitle", "body", "image", "icon", "link")
    NAME_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    TITLE_FIELD_NUMBER: _ClassVar[int]
    SUBTITLE_FIELD_NUMBER: _ClassVar[int]
    BODY_FIELD_NUMBER: _ClassVar[int]
    IMAGE_FIELD_NUMBER: _ClassVar[int]
    ICON_FIELD_NUMBER: _ClassVar[int]
    LINK_FIELD_NUMBER: _ClassVar[int]
    name: str
    weight: int
    title: str
    subtitle: str
    body: str
    image: str
    icon: str
    link: str
    def __init__(self, name: _Optional[str] = ..., weight: _Optional[int] = ..., title: _Optional[str] = ..., subtitle: _Optional[str] = ..., body: _Optional[str] = ..., image: _Optional[str] = ..., icon: _Optional[str] = ..., link: _Optional[str] = ...) -> None: ...

class Action(_message.Message):
    __slots__ = ("id", "title", "link", "icon")
    ID_FIELD_NUMBER: _ClassVar[int]
    TITLE_FIELD_NUMBER: _ClassVar[int]
    LINK_FIELD_NUMBER: _ClassVar[int]
    ICON_FIELD_NUMBER: _ClassVar[int]
    id: str
    title: str
    link: str
    icon: str
    def __init__(self, id: _Optional[str] = ..., title: _Optional[str] = ..., link: _Optional[str] = ..., icon: _Optional[str] = ...) -> None: ...

class Broadcast(_message.Message):
    __slots__ = ("channel", "kind", "name")
    CHANNEL_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    channel: str
    kind: str
    name: str
    def __init__(self, channel: _Optional[str] = ..., kind: _Optional[str] = ..., name: _Optional[str] = ...) -> None: ...

class ChannelStep(_message.Message):
    __slots__ = ("to", "until")
    TO_FIELD_NUMBER: _ClassVar[int]
    UNTIL_FIELD_NUMBER: _ClassVar[int]
    FOR_FIELD_NUMBER: _ClassVar[int]
    to: str
    until: str
    def __init__(self, to: _Optional[str] = ..., until: _Optional[str] = ..., **kwargs) -> None: ...

class DeviceAddress(_message.Message):
    __slots__ = ("platform", "token", "keys")
    PLATFORM_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    KEYS_FIELD_NUMBER: _ClassVar[int]
    platform: str
    token: str
    keys: SubscriptionKeys
    def __init__(self, platform: _Optional[str] = ..., token: _Optional[str] = ..., keys: _Optional[_Union[SubscriptionKeys, _Mapping]] = ...) -> None: ...

class SubscriptionKeys(_message.Message):
    __slots__ = ("p256dh", "auth")
    P256DH_FIELD_NUMBER: _ClassVar[int]
    AUTH_FIELD_NUMBER: _ClassVar[int]
    p256dh: str
    auth: str
    def __init__(self, p256dh: _Optional[str] = ..., auth: _Optional[str] = ...) -> None: ...

class Submitted(_message.Message):
    __slots__ = ("id", "status", "content_hash", "deduplicated", "record_id")
    ID_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    CONTENT_HASH_FIELD_NUMBER: _ClassVar[int]
    DEDUPLICATED_FIELD_NUMBER: _ClassVar[int]
    RECORD_ID_FIELD_NUMBER: _ClassVar[int]
    id: str
    status: NotificationStatus
    content_hash: str
    deduplicated: bool
    record_id: str
    def __init__(self, id: _Optional[str] = ..., status: _Optional[_Union[NotificationStatus, str]] = ..., content_hash: _Optional[str] = ..., deduplicated: _Optional[bool] = ..., record_id: _Optional[str] = ...) -> None: ...

class SubmitBatchRequest(_message.Message):
    __slots__ = ("notifications",)
    NOTIFICATIONS_FIELD_NUMBER: _ClassVar[int]
    notifications: _containers.RepeatedCompositeFieldContainer[Submission]
    def __init__(self, notifications: _Optional[_Iterable[_Union[Submission, _Mapping]]] = ...) -> None: ...

class SubmitBatchResponse(_message.Message):
    __slots__ = ("accepted", "deduplicated", "refused", "results")
    ACCEPTED_FIELD_NUMBER: _ClassVar[int]
    DEDUPLICATED_FIELD_NUMBER: _ClassVar[int]
    REFUSED_FIELD_NUMBER: _ClassVar[int]
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    accepted: int
    deduplicated: int
    refused: int
    results: _containers.RepeatedCompositeFieldContainer[SubmitResult]
    def __init__(self, accepted: _Optional[int] = ..., deduplicated: _Optional[int] = ..., refused: _Optional[int] = ..., results: _Optional[_Iterable[_Union[SubmitResult, _Mapping]]] = ...) -> None: ...

class SubmitResult(_message.Message):
    __slots__ = ("notification", "error")
    NOTIFICATION_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    notification: Submitted
    error: _status_pb2.Status
    def __init__(self, notification: _Optional[_Union[Submitted, _Mapping]] = ..., error: _Optional[_Union[_status_pb2.Status, _Mapping]] = ...) -> None: ...

class SubmitStreamRequest(_message.Message):
    __slots__ = ("items",)
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    items: _containers.RepeatedCompositeFieldContainer[StreamItem]
    def __init__(self, items: _Optional[_Iterable[_Union[StreamItem, _Mapping]]] = ...) -> None: ...

class StreamItem(_message.Message):
    __slots__ = ("sequence", "notification")
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    NOTIFICATION_FIELD_NUMBER: _ClassVar[int]
    sequence: int
    notification: Submission
    def __init__(self, sequence: _Optional[int] = ..., notification: _Optional[_Union[Submission, _Mapping]] = ...) -> None: ...

class SubmitStreamResponse(_message.Message):
    __slots__ = ("acknowledgements",)
    ACKNOWLEDGEMENTS_FIELD_NUMBER: _ClassVar[int]
    acknowledgements: _containers.RepeatedCompositeFieldContainer[Acknowledgement]
    def __init__(self, acknowledgements: _Optional[_Iterable[_Union[Acknowledgement, _Mapping]]] = ...) -> None: ...

class Acknowledgement(_message.Message):
    __slots__ = ("sequence", "notification", "error")
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    NOTIFICATION_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    sequence: int
    notification: Submitted
    error: _status_pb2.Status
    def __init__(self, sequence: _Optional[int] = ..., notification: _Optional[_Union[Submitted, _Mapping]] = ..., error: _Optional[_Union[_status_pb2.Status, _Mapping]] = ...) -> None: ...

class GetRequest(_message.Message):
    __slots__ = ("id",)
    ID_FIELD_NUMBER: _ClassVar[int]
    id: str
    def __init__(self, id: _Optional[str] = ...) -> None: ...

class Notification(_message.Message):
    __slots__ = ("id", "status", "user_id", "caller", "kind", "urgency", "guarantee", "created_at", "expires_at", "scheduled_at", "finished_at", "reason", "duplicate_of", "round", "receipts")
    ID_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    USER_ID_FIELD_NUMBER: _ClassVar[int]
    CALLER_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    URGENCY_FIELD_NUMBER: _ClassVar[int]
    GUARANTEE_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_AT_FIELD_NUMBER: _ClassVar[int]
    SCHEDULED_AT_FIELD_NUMBER: _ClassVar[int]
    FINISHED_AT_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    DUPLICATE_OF_FIELD_NUMBER: _ClassVar[int]
    ROUND_FIELD_NUMBER: _ClassVar[int]
    RECEIPTS_FIELD_NUMBER: _ClassVar[int]
    id: str
    status: NotificationStatus
    user_id: str
    caller: str
    kind: Kind
    urgency: Urgency
    guarantee: Guarantee
    created_at: _timestamp_pb2.Timestamp
    expires_at: _timestamp_pb2.Timestamp
    scheduled_at: _timestamp_pb2.Timestamp
    finished_at: _timestamp_pb2.Timestamp
    reason: str
    duplicate_of: str
    round: int
    receipts: _containers.RepeatedCompositeFieldContainer[Receipt]
    def __init__(self, id: _Optional[str] = ..., status: _Optional[_Union[NotificationStatus, str]] = ..., user_id: _Optional[str] = ..., caller: _Optional[str] = ..., kind: _Optional[_Union[Kind, str]] = ..., urgency: _Optional[_Union[Urgency, str]] = ..., guarantee: _Optional[_Union[Guarantee, str]] = ..., created_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., expires_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., scheduled_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., finished_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., reason: _Optional[str] = ..., duplicate_of: _Optional[str] = ..., round: _Optional[int] = ..., receipts: _Optional[_Iterable[_Union[Receipt, _Mapping]]] = ...) -> None: ...

class Receipt(_message.Message):
    __slots__ = ("n", "device_id", "channel", "status", "attempts", "provider_id", "code", "reason", "next_retry_at", "sent_at", "resolved_at")
    N_FIELD_NUMBER: _ClassVar[int]
    DEVICE_ID_FIELD_NUMBER: _ClassVar[int]
    CHANNEL_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    PROVIDER_ID_FIELD_NUMBER: _ClassVar[int]
    CODE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    NEXT_RETRY_AT_FIELD_NUMBER: _ClassVar[int]
    SENT_AT_FIELD_NUMBER: _ClassVar[int]
    RESOLVED_AT_FIELD_NUMBER: _ClassVar[int]
    n: int
    device_id: str
    channel: str
    status: DeliveryStatus
    attempts: int
    provider_id: str
    code: str
    reason: str
    next_retry_at: _timestamp_pb2.Timestamp
    sent_at: _timestamp_pb2.Timestamp
    resolved_at: _timestamp_pb2.Timestamp
    def __init__(self, n: _Optional[int] = ..., device_id: _Optional[str] = ..., channel: _Optional[str] = ..., status: _Optional[_Union[DeliveryStatus, str]] = ..., attempts: _Optional[int] = ..., provider_id: _Optional[str] = ..., code: _Optional[str] = ..., reason: _Optional[str] = ..., next_retry_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., sent_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., resolved_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...
