"""Every event that is logged, by name and level; docs/telemetry.md explains each."""

from __future__ import annotations

from enum import Enum, StrEnum


class Level(StrEnum):
    """The level of an event: how much an operator should care."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class Event(Enum):
    """An event, ``(name, level)``; names are stable, fields are identifiers, counts and milliseconds, never content."""

    PROCESS_STARTING = ("process.starting", Level.INFO)
    PROCESS_READY = ("process.ready", Level.INFO)
    PROCESS_DRAINING = ("process.draining", Level.INFO)
    PROCESS_STOPPED = ("process.stopped", Level.INFO)
    PROCESS_REFUSED = ("process.refused", Level.ERROR)
    WORKER_STARTED = ("worker.started", Level.INFO)
    WORKER_DIED = ("worker.died", Level.ERROR)
    WORKER_FROZEN = ("worker.frozen", Level.ERROR)
    DELIVERY_MISSING = ("delivery.missing", Level.WARNING)
    DELIVERY_RESUMED = ("delivery.resumed", Level.INFO)
    SHARDS_TAKEN = ("shards.taken", Level.INFO)
    SHARDS_HANDED_OVER = ("shards.handed_over", Level.INFO)
    LEASES_LET_GO = ("leases.let_go", Level.WARNING)
    NOTIFICATION_ACCEPTED = ("notification.accepted", Level.DEBUG)
    NOTIFICATION_PROCESSED = ("notification.processed", Level.DEBUG)
    NOTIFICATION_POISON = ("notification.poison", Level.ERROR)
    DELIVERY_SETTLED = ("delivery.settled", Level.DEBUG)
    DELIVERY_DEAD = ("delivery.dead", Level.WARNING)
    NOTIFICATION_NEWER = ("notification.newer", Level.WARNING)
    SETTLE_STALE = ("settle.stale", Level.WARNING)
    OUTCOMES_HELD = ("outcomes.held", Level.ERROR)
    OUTCOMES_RESUMED = ("outcomes.resumed", Level.INFO)
    PARTITIONS_TAKEN = ("partitions.taken", Level.INFO)
    RECORDING_SHARED = ("recording.shared", Level.INFO)
    PARTITIONS_LEFT = ("partitions.left", Level.INFO)
    MESSAGE_UNREADABLE = ("message.unreadable", Level.ERROR)
    MESSAGE_NEWER = ("message.newer", Level.ERROR)
    MESSAGE_REFUSED = ("message.refused", Level.WARNING)
    SOURCE_AWAY = ("source.away", Level.ERROR)
    SOURCE_BACK = ("source.back", Level.INFO)
    SOURCE_WAITING = ("source.waiting", Level.WARNING)
    SOURCE_RESUMED = ("source.resumed", Level.INFO)
    DEDUP_OPEN = ("dedup.open", Level.WARNING)
    DEDUP_RESUMED = ("dedup.resumed", Level.INFO)
    STORE_FULL = ("store.full", Level.ERROR)
    STORE_AWAY = ("store.away", Level.ERROR)
    STORE_BROKEN = ("store.broken", Level.ERROR)
    STORE_RECOVERED = ("store.recovered", Level.INFO)
    STORE_HELD_BACK = ("store.held_back", Level.WARNING)
    STORE_MONTHS = ("store.months", Level.WARNING)
    CREDENTIAL_DENIED = ("credential.denied", Level.ERROR)
    CREDENTIAL_ENDING = ("credential.ending", Level.WARNING)
    CREDENTIAL_UNREHEARSED = ("credential.unrehearsed", Level.WARNING)
    CREDENTIAL_RELOADED = ("credential.reloaded", Level.INFO)
    CREDENTIAL_REFUSED = ("credential.refused", Level.ERROR)
    BREAKER_OPENED = ("breaker.opened", Level.WARNING)
    BREAKER_PROBING = ("breaker.probing", Level.INFO)
    BREAKER_CLOSED = ("breaker.closed", Level.INFO)
    CONNECTION_OPENED = ("connection.opened", Level.DEBUG)
    CONNECTION_CLOSED = ("connection.closed", Level.INFO)
    CONNECTION_FAILED = ("connection.failed", Level.WARNING)
    CONNECTION_GOAWAY = ("connection.goaway", Level.INFO)
    NOTIFICATION_RECOVERED = ("notification.recovered", Level.WARNING)
    ALERT_RAISED = ("alert.raised", Level.ERROR)
    ALERT_RESOLVED = ("alert.resolved", Level.INFO)
    WEBHOOK_ATTEMPT = ("webhook.attempt", Level.INFO)
    WEBHOOK_DISABLED = ("webhook.disabled", Level.ERROR)
    REGISTRY_AWAY = ("registry.away", Level.ERROR)
    REGISTRY_BACK = ("registry.back", Level.INFO)
    REGISTRY_NODES = ("registry.nodes", Level.WARNING)
    TOKENS_EVICTED = ("tokens.evicted", Level.INFO)
    DEVICES_AGED = ("devices.aged", Level.INFO)
    TOKENS_SUSPECT = ("tokens.suspect", Level.ERROR)
    TOKENS_TRUSTED = ("tokens.trusted", Level.INFO)
    LOG_DROPPED = ("log.dropped", Level.WARNING)
    USER_ERASED = ("user.erased", Level.INFO)
    BULK_FAILED = ("bulk.failed", Level.ERROR)
    CAMPAIGN_STOPPED = ("campaign.stopped", Level.ERROR)
    SCHEDULE_REFUSED = ("schedule.refused", Level.WARNING)
    SERIES_REFUSED = ("series.refused", Level.WARNING)
    ERASURE_FAILED = ("erasure.failed", Level.ERROR)
    ARCHIVE_DONE = ("archive.done", Level.INFO)
    ARCHIVE_AWAY = ("archive.away", Level.ERROR)
    ARCHIVE_DAMAGED = ("archive.damaged", Level.ERROR)
    SWEEP_DONE = ("sweep.done", Level.DEBUG)
    REDIS_AWAY = ("redis.away", Level.ERROR)
    REDIS_BACK = ("redis.back", Level.INFO)
    RELAY_RETRY = ("relay.retry", Level.WARNING)
    KAFKA_AWAY = ("kafka.away", Level.ERROR)
    KAFKA_BACK = ("kafka.back", Level.INFO)
    NOTIFICATIONS_MAX_RETRIES = ("notifications.max_retries", Level.ERROR)
    NOTIFICATIONS_FCM_FATAL = ("notifications.fcm_fatal", Level.ERROR)
    NOTIFICATIONS_UNREADABLE = ("notifications.unreadable", Level.ERROR)
    NOTIFICATIONS_TRIMMED = ("notifications.trimmed", Level.ERROR)
    TOKEN_KEYS_AWAY = ("token_keys.away", Level.ERROR)
    TOKEN_KEYS_BACK = ("token_keys.back", Level.INFO)
    BALANCE_OFF = ("balance.off", Level.ERROR)
    BALANCE_RESTORED = ("balance.restored", Level.INFO)
    LOGIN_REFUSED = ("login.refused", Level.WARNING)
    REQUEST_FAILED = ("request.failed", Level.ERROR)
    STAGE_FAILED = ("stage.failed", Level.ERROR)

    def __init__(self, label: str, level: Level) -> None:
        self.label = label
        self.level = level
