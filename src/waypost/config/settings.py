"""The frozen tree of every setting; the text under each is its line in docs/configuration.md."""

from __future__ import annotations

import datetime as dt
import os
from enum import StrEnum
from typing import Annotated, Any, Literal, NewType

from msgspec import Meta, Struct, field, structs

from waypost.adapters.jwt.settings import IssuerSettings
from waypost.adapters.otel.settings import TraceSettings
from waypost.domain.ids import AppId
from waypost.domain.limits import UNLIMITED, Quota
from waypost.domain.notification import Lane
from waypost.domain.preferences import PreferenceSettings, TypeSettings
from waypost.domain.retry import RetryRules
from waypost.domain.submission import Defaults, NotificationType, TypedDefaults
from waypost.entrypoints.grpc.settings import GrpcSettings
from waypost.entrypoints.rest.settings import RestSettings
from waypost.pipeline.age import DeviceAges
from waypost.ports.promises import Promise
from waypost.runtime.listening import Listen
from waypost.runtime.roles import CRITICAL_ROLES, Role
from waypost.runtime.timer import TimerSettings
from waypost.stores.cassandra.settings import CassandraSettings
from waypost.stores.kafka.settings import KafkaSettings, KafkaSourceSettings
from waypost.stores.redis.settings import RedisSettings, RedisSourceSettings
from waypost.stores.sql.settings import OutboxSettings, SqlSettings
from waypost.telemetry.events import Level

MAX_WORKERS = 64
DEFAULT_STORE_URL = "sqlite:///waypost.db"


def one_per_core() -> int:
    """Count the cores that this process may use, at most 64: the default number of workers."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(cores, MAX_WORKERS)


class Stack(StrEnum):
    """The engines that store and distribute the work."""

    EMBEDDED = "embedded"
    LOG = "log"


class Handoff(StrEnum):
    """The link between routing and delivering."""

    MEMORY = "memory"
    QUEUE = "queue"


ROLE_OF = {Role.RECORDER: Stack.LOG}
"""The roles that one stack alone has."""
HANDOFF_OF = {Role.WORKER: Handoff.MEMORY, Role.ROUTER: Handoff.QUEUE, Role.DELIVERER: Handoff.QUEUE}
"""The roles that one hand-over alone has."""


SourceName = NewType("SourceName", str)
CallerName = NewType("CallerName", str)
EndpointName = NewType("EndpointName", str)


class RateSettings(Struct, frozen=True, kw_only=True):
    """Limits of what one provider gets by one credential; what is over them waits and spends no attempt."""

    capacity: Annotated[int, Meta(ge=1)] | None = None
    """Notifications sent at once after a pause. Unset: the plug-in's."""
    refill_per_s: Annotated[float, Meta(gt=0)] | None = None
    """Notifications a second. Unset: the plug-in's."""
    ramp_s: Annotated[float, Meta(ge=0)] | None = None
    """Seconds from a twentieth of both to the whole, after a pause as long. Unset: the plug-in's."""
    unlimited: bool = False
    """Removes the limit, also the plug-in's."""
    per_device: Quota | None = None
    """The most that one device is sent, such as `20/min`. Unset: the plug-in's."""


IssuerName = NewType("IssuerName", str)


class AppLimits(Struct, frozen=True, kw_only=True):
    """Limits of what an app and its callers may ask for."""

    all: Quota = UNLIMITED
    """Requests of all callers of the app; items of a batch count."""
    callers: dict[CallerName, Quota] = {}
    """Requests of this caller, in place of `limits.caller`."""


class ContactSettings(Struct, frozen=True, kw_only=True):
    """Proofs that an address is its user's, by a code that is sent to it."""

    verify: tuple[Literal["email", "phone"], ...] = ()
    """Contacts that get nothing but a code until it is entered; needs `contacts.secret_file`."""
    title: Annotated[str, Meta(min_length=1, max_length=200)] = "Confirm your address"
    """The title of the message with the code."""
    text: Annotated[str, Meta(min_length=1, max_length=1_000)] = "{code} is your code. It ends in {minutes} minutes."
    """Its text: `{code}` is six digits, `{link}` a page that confirms, `{minutes}` how long both hold."""
    code_s: Annotated[int, Meta(ge=60, le=86_400)] = 600
    """Seconds for which a code holds."""
    tries: Annotated[int, Meta(ge=1, le=10)] = 5
    """Tries at a code; then another has to be sent."""
    codes_per_hour: Annotated[int, Meta(ge=1, le=100)] = 5
    """The most codes to one address an hour (UTC)."""


class CampaignSettings(Struct, frozen=True, kw_only=True):
    """The needs and prices of an app's campaigns."""

    approval: bool = False
    """Whether a campaign begins only after another caller than who changed it last has approved it."""
    sms_price: Annotated[float, Meta(ge=0)] = 0.0
    """The price of one SMS segment, in whatever currency, for the forecast."""


class AppSettings(Struct, frozen=True, kw_only=True):
    """An app: one product whose users are notified."""

    senders: dict[str, Any] = {}
    """The section of each channel that the app has one for, as its plug-in reads it; written as keys of their own.
    A second one of a channel is written as `<channel>/<name>`."""
    fallback: dict[str, tuple[str, ...]] = {}
    """The accounts that stand in for the channel's default one, in order."""
    on_denied: Literal["wait", "fail"] = "wait"
    """The fate of deliveries while every account of a channel is refused: they wait, or fail at once."""
    expires_on: dict[str, dt.date] = {}
    """The day (UTC) on which a key ends; certificates say it themselves."""
    rehearsed_on: dict[str, dt.date] = {}
    """The day (UTC) of the last rehearsed renewal; the log warns a year later."""
    defaults: Defaults = Defaults()
    """What holds where a caller is silent."""
    device_cap: Annotated[int, Meta(ge=0, le=50)] = 10
    """Active devices of a user; above it, the one seen longest ago is deactivated. 0: no cap."""
    dead_devices: Literal["keep", "delete"] = "keep"
    """Devices whose token is dead: kept, deactivated, or deleted."""
    retry: RetryRules = RetryRules()
    """Which retry policy answers which failure."""
    issuers: dict[IssuerName, IssuerSettings] = {}
    """Whose tokens are believed, by a name of your own."""
    rates: dict[str, RateSettings] = {}
    """How much the provider of a channel is to get."""
    limits: AppLimits = AppLimits()
    """How much may be asked for."""
    contacts: ContactSettings = ContactSettings()
    """Whose addresses are sent to."""
    time_zone: str | None = None
    """The zone of users who have none of their own, by its IANA name such as `Europe/Zurich`. Unset: UTC."""
    types: dict[NotificationType, TypeSettings] = {}
    """The types of message that users can choose from, by name."""
    preferences: PreferenceSettings = PreferenceSettings()
    """What holds of all types."""
    campaigns: CampaignSettings = CampaignSettings()
    """How campaigns begin."""

    @property
    def typed_defaults(self) -> TypedDefaults:
        """What holds where a caller is silent, by the type of the message too."""
        ttls_s = {name: each.ttl_s for name, each in self.types.items() if each.ttl_s is not None}
        return TypedDefaults(**structs.asdict(self.defaults), ttls_s=ttls_s)


class LaneSettings(Struct, frozen=True, kw_only=True):
    """Limits of one lane."""

    in_flight: Annotated[int, Meta(ge=1)] | None = None
    """The most deliveries in flight for one credential in one worker. Unset: the lane's share of the connections."""


class LimitSettings(Struct, frozen=True, kw_only=True):
    """Limits beyond which requests are refused."""

    backlog: Annotated[int, Meta(ge=1)] = 1_000_000
    """The most notifications waiting in one lane, and of one app as many as there is room left; above it, 429
    `backlog_full`."""
    counted_in: Literal["memory", "file", "redis"] | None = None
    """Counts by process (`memory`), machine (`file`), or for several machines (`redis`). Unset: `file`, with one worker
    `memory`."""
    when_away: Literal["local", "refuse"] = "local"
    """While the counter is away, each process counts by itself (`local`), or requests are refused and deliveries
    wait."""
    caller: Quota = Quota(50_000)
    """Requests of one caller (API key or service token); items of a batch count."""
    user: Quota = Quota(100, 900)
    """Writing requests and live connections of one end user, by their own token, a ticket or under `/api`."""
    address: Quota = Quota(1_000, 3_600)
    """Requests from one address without a valid credential."""
    failures: Quota = Quota(100, 900)
    """Unknown API keys from one address; above it, keys from there are refused but for those verified shortly
    before."""
    endpoints: dict[EndpointName, Quota] = {}
    """Requests of one caller or user to one route: `POST /v1/notifications`, `gRPC SubmitBatch`."""
    trusted_proxies: tuple[str, ...] = ()
    """Addresses or networks of proxies that may name the client's address."""
    forwarded_header: Literal["x-forwarded-for", "forwarded"] = "x-forwarded-for"
    """The header that names it; the other is ignored."""


class RetentionSettings(Struct, frozen=True, kw_only=True):
    """Retention of finished work."""

    notifications_days: Annotated[int, Meta(ge=1)] = 90
    """Days for which finished notifications and their receipts are kept."""
    audit_days: Annotated[int, Meta(ge=1)] = 365
    """Days for which audit entries are kept."""
    devices: DeviceAges = DeviceAges()
    """How long devices are kept."""
    erased: Literal["keep", "delete"] = "keep"
    """What is left of an erased user's notifications: receipts without the person, or nothing."""
    hidden: Literal["keep", "delete"] = "keep"
    """A finished notification that its user deleted under `/api` is kept for the app, or deleted ten minutes later."""


class SourceSettings(Struct, frozen=True, kw_only=True):
    """A stream that other programs write: either of the two."""

    app: AppId
    """The app to whose users the messages go."""
    caller: Annotated[str, Meta(min_length=1, max_length=128)] | None = None
    """The caller to whom idempotency keys belong. Unset: `source:` and the source's name."""
    batch: Annotated[int, Meta(ge=1, le=5_000)] = 500
    """The most messages accepted and acknowledged together."""
    redis: RedisSourceSettings | None = None
    """A Redis Stream."""
    kafka: KafkaSourceSettings | None = None
    """A topic."""


class LogFormat(StrEnum):
    """The form of the log's lines."""

    AUTO = "auto"
    JSON = "json"
    TEXT = "text"


class LogSettings(Struct, frozen=True, kw_only=True):
    """Settings of the log."""

    level: Level = Level.INFO
    """The lowest level that is logged."""
    format: LogFormat = LogFormat.AUTO
    """`auto` is text on a terminal, JSON elsewhere."""


class Config(Struct, frozen=True, kw_only=True):
    """The whole configuration of an operator."""

    apps: dict[AppId, AppSettings]
    """The products whose users are notified, by id."""
    store: SqlSettings = SqlSettings(url=DEFAULT_STORE_URL)
    """The database; a URL alone will do."""
    stack: Stack = Stack.EMBEDDED
    """What holds accepted work: the store, or Kafka (`log`), with the store as its ledger."""
    requires: tuple[Promise, ...] = ()
    """Promises that the stack must keep, or it is refused; docs/stacks.md."""
    handoff: Handoff = Handoff.MEMORY
    """Between routing and delivering: nothing, or on PostgreSQL a `queue` from `router` to `deliverer`."""
    outbox: OutboxSettings = OutboxSettings()
    """What is published to topics that others read, on PostgreSQL."""
    kafka: KafkaSettings | None = None
    """The log, where `stack` is `log`, or where `outbox.to` publishes."""
    redis: RedisSettings | None = None
    """What processes share beside the store; never the only copy of anything."""
    cache: Literal["redis"] | None = None
    """Where users' devices, and the first pages of feeds, are cached. Unset: nowhere."""
    devices: Literal["store", "cassandra"] = "store"
    """Where devices are stored."""
    feeds: Literal["store", "cassandra"] = "store"
    """Where feeds are listed from: the store, or copies of them."""
    cassandra: CassandraSettings | None = None
    """The cluster, where it keeps devices, or copies of feeds."""
    dedup: Literal["redis"] | None = None
    """Where the `log` stack keeps dedup keys. Unset: in the store."""
    listen: Listen = Listen("127.0.0.1", 8080)
    """The API's address; port 0 picks a free one."""
    profile: Literal["simplens"] | None = None
    """Defaults that imitate another service."""
    workers: Annotated[int, Meta(ge=1, le=MAX_WORKERS)] = field(default_factory=one_per_core)
    """Processes that accept and deliver; 1 has no supervisor. Several on SQLite are *nice* (2), but for the threads
    that write: other programs that need all processors come first."""
    critical_worker: bool = False
    """With two workers or more: one more, for critical notifications alone, to which the others give way."""
    roles: tuple[Role, ...] = ()
    """What this process does. Unset: all."""
    sources: dict[SourceName, SourceSettings] = {}
    """Streams from which notifications come, by a name of your own; read by processes with the role `api`."""
    drain_timeout_s: Annotated[float, Meta(ge=0, le=3_600)] = 20.0
    """Seconds that a stopping process waits for what is in flight."""
    lanes: dict[Lane, LaneSettings] = {}
    """What each lane may use; lanes never wait for each other."""
    timer: TimerSettings = TimerSettings()
    """How often, and how much at a time, what is due is released."""
    limits: LimitSettings = LimitSettings()
    """Limits beyond which requests are refused."""
    rest: RestSettings = RestSettings()
    """How much and how slow a client of the API may be."""
    grpc: GrpcSettings = GrpcSettings()
    """The same API for callers that speak gRPC."""
    retention: RetentionSettings = RetentionSettings()
    """The retention of finished work."""
    log: LogSettings = LogSettings()
    """What is logged."""
    traces: TraceSettings | None = None
    """Where traces go. Unset: nothing is traced."""
    features: dict[str, Any] = {}
    """The section of each feature that has one; written as keys of their own."""

    @property
    def has_critical_worker(self) -> bool:
        """Whether there is a worker for critical notifications, beside several others."""
        delivers = not self.does().isdisjoint((Role.WORKER, Role.DELIVERER))
        return self.critical_worker and self.workers > 1 and delivers

    @property
    def processes(self) -> int:
        """The number of processes that work: the workers, and the critical one."""
        return self.workers + self.has_critical_worker

    def of_critical_worker(self) -> Config:
        """Return the configuration of the critical worker: it has no duties, and takes single requests alone."""
        roles = tuple(role for role in Role if role in self.does() & CRITICAL_ROLES)
        grpc = structs.replace(self.grpc, listen=None)
        return structs.replace(self, roles=roles, sources={}, grpc=grpc)

    def does(self) -> frozenset[Role]:
        """Return the roles of this process."""
        return frozenset(self.roles or (role for role in Role if self.why_not(role) is None))

    def why_not(self, role: Role) -> str | None:
        """Explain why this process cannot have *role*; None where it can."""
        if ROLE_OF.get(role, self.stack) is not self.stack:
            return f"{role} is a role of the {ROLE_OF[role]} stack alone"
        if role is Role.RELAY and self.outbox.to is None:
            return "relay is a role where `outbox.to` says where to publish"
        if HANDOFF_OF.get(role, self.handoff) is not self.handoff:
            here = "`router` and `deliverer`" if self.handoff is Handoff.QUEUE else "`worker`"
            return f"{role} is a role of `handoff: {HANDOFF_OF[role]}` alone, here it is {here}"
        return None

    def lane(self, lane: Lane) -> LaneSettings:
        """Return the settings of *lane*: as configured, or the default."""
        return self.lanes.get(lane, LaneSettings())
