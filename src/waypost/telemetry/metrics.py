"""Every metric, by name, kind and labels; docs/telemetry.md explains each."""

from __future__ import annotations

from enum import Enum, StrEnum


class MetricKind(StrEnum):
    """The kind of a metric: how its values combine over time and over workers."""

    COUNTER = "counter"
    GAUGE = "gauge"
    """The sum over the living workers."""
    MAXIMUM = "maximum"
    """A gauge of which the largest of the living workers is read, since each tells of the whole store."""
    HISTOGRAM = "histogram"


class Metric(Enum):
    """A metric, ``(name, kind, labels, help)``; counted per batch, labels never hold a user or a text."""

    REQUESTS = ("waypost_http_requests_total", MetricKind.COUNTER, ("route", "status"), "API requests answered")
    REQUEST_SECONDS = ("waypost_http_request_seconds", MetricKind.HISTOGRAM, ("route",), "Time to answer a request")
    ACCEPTED = ("waypost_accepted_total", MetricKind.COUNTER, ("app", "lane"), "Notifications accepted")
    DEDUPLICATED = ("waypost_deduplicated_total", MetricKind.COUNTER, ("app",), "Requests answered as duplicates")
    REFUSED = ("waypost_refused_total", MetricKind.COUNTER, ("app", "code"), "Requests refused, by error code")
    SHED = ("waypost_shed_total", MetricKind.COUNTER, ("app", "cause"), "Requests refused as the store was behind")
    LIMITED = (
        "waypost_limited_total",
        MetricKind.COUNTER,
        ("limit", "app"),
        "Requests refused and deliveries put off for being over a limit, by its kind",
    )
    SOURCE_READ = (
        "waypost_source_read_total",
        MetricKind.COUNTER,
        ("source",),
        "Messages of a stream that were read",
    )
    SOURCE_TAKEN = (
        "waypost_source_taken_total",
        MetricKind.COUNTER,
        ("source", "result"),
        "Messages of a stream acknowledged, by what became of them",
    )
    SOURCE_WAITING = ("waypost_source_waiting", MetricKind.GAUGE, ("source",), "Messages of a stream nobody has read")
    SOURCE_HELD = ("waypost_source_held", MetricKind.GAUGE, ("source",), "Messages read and not acknowledged")
    LEASED = ("waypost_leased_total", MetricKind.COUNTER, ("lane",), "Work items leased")
    ROUTED = ("waypost_routed_total", MetricKind.COUNTER, ("app", "lane"), "Deliveries that routing made")
    ATTEMPTS = (
        "waypost_attempts_total",
        MetricKind.COUNTER,
        ("app", "lane", "provider", "outcome"),
        "Attempts, by what the provider answered",
    )
    PLAIN_ATTEMPTS = (
        "waypost_plain_attempts_total",
        MetricKind.COUNTER,
        ("lane",),
        "Attempts that were taken and settled together, in columns",
    )
    FAILED_ATTEMPTS = (
        "waypost_failed_attempts_total",
        MetricKind.COUNTER,
        ("app", "provider", "code"),
        "Attempts that the provider did not take, by the code of its answer",
    )
    SETTLED = (
        "waypost_settled_total",
        MetricKind.COUNTER,
        ("app", "lane", "settlement"),
        "Settlements written, by what was decided",
    )
    FINISHED = ("waypost_finished_total", MetricKind.COUNTER, ("app", "status"), "Notifications finished")
    STALE = ("waypost_stale_settlements_total", MetricKind.COUNTER, (), "Settlements that lost the compare-and-set")
    HANDOVER_SECONDS = (
        "waypost_handover_seconds",
        MetricKind.HISTOGRAM,
        ("lane",),
        "From accept to the first hand-over to a provider",
    )
    DELIVERY_SECONDS = (
        "waypost_delivery_seconds",
        MetricKind.HISTOGRAM,
        ("lane",),
        "From accept, or the scheduled time, to the provider taking it",
    )
    PROVIDER_SECONDS = (
        "waypost_provider_seconds",
        MetricKind.HISTOGRAM,
        ("provider",),
        "From handing over a batch to its last outcome",
    )
    SPANS = ("waypost_spans_total", MetricKind.COUNTER, ("state",), "Spans that ended, and that the collector took")
    COMMIT_SECONDS = ("waypost_commit_seconds", MetricKind.HISTOGRAM, (), "Time of one group commit")
    COMMIT_ROWS = ("waypost_commit_operations", MetricKind.HISTOGRAM, (), "Operations in one group commit")
    STORE_SECONDS = (
        "waypost_store_seconds",
        MetricKind.HISTOGRAM,
        ("query",),
        "Time of one read of the store, or of all operations of a kind in one commit",
    )
    STORE_POOL = ("waypost_store_pool", MetricKind.GAUGE, ("pool",), "Connections to the store that may read at once")
    STORE_POOL_BUSY = ("waypost_store_pool_busy", MetricKind.GAUGE, ("pool",), "Connections that are reading")
    STORE_POOL_WAITING = ("waypost_store_pool_waiting", MetricKind.GAUGE, ("pool",), "Reads that wait for a connection")
    DISK_SIZE = ("waypost_disk_size_bytes", MetricKind.MAXIMUM, (), "Size of the disk that Waypost writes to")
    DISK_FREE = ("waypost_disk_free_bytes", MetricKind.MAXIMUM, (), "Room that is left on it")
    STORE_SIZE = ("waypost_store_size_bytes", MetricKind.MAXIMUM, (), "Size of the store")
    STORE_GROWTH = ("waypost_store_growth_bytes", MetricKind.MAXIMUM, (), "Bytes by which the store grows in a day")
    LIVE_CONNECTIONS = ("waypost_live_connections", MetricKind.GAUGE, (), "Live connections that follow a feed")
    DEPTH = ("waypost_queue_depth", MetricKind.GAUGE, ("lane",), "Items leasable now")
    OPEN = (
        "waypost_open_notifications",
        MetricKind.MAXIMUM,
        ("lane", "app"),
        "Notifications that are not final; apps beyond the 20 largest of a lane are summed up",
    )
    OLDEST_NEW = (
        "waypost_oldest_new_seconds",
        MetricKind.MAXIMUM,
        ("lane", "app"),
        "Age of the oldest notification of which the first attempt is not over",
    )
    IN_FLIGHT = ("waypost_in_flight", MetricKind.GAUGE, ("credential",), "Deliveries handed to a sender")
    IN_FLIGHT_LIMIT = (
        "waypost_in_flight_limit",
        MetricKind.GAUGE,
        ("credential",),
        "Deliveries that may be in flight at once, as the provider's answers allow",
    )
    OLDEST_TRANSACTION = (
        "waypost_oldest_transaction_seconds",
        MetricKind.GAUGE,
        (),
        "Age of the oldest transaction that is open on the database server",
    )
    MONTHS_MISSING = (
        "waypost_months_missing",
        MetricKind.GAUGE,
        (),
        "Tables of this month or of those ahead that are not there",
    )
    MONTHS_UNDROPPED = (
        "waypost_months_undropped",
        MetricKind.GAUGE,
        (),
        "Tables of months that are over and could not be dropped",
    )
    BALANCE_DIFFERENCE = (
        "waypost_balance_difference",
        MetricKind.MAXIMUM,
        ("line",),
        "By how much a line of the balance does not add up, all apps and lanes together",
    )
    OPEN_DELIVERIES = (
        "waypost_open_deliveries",
        MetricKind.MAXIMUM,
        ("lane", "place"),
        "Deliveries on record that have not ended: those that wait for another attempt, are parked or under way",
    )
    LEDGER_BEHIND = (
        "waypost_ledger_behind_seconds",
        MetricKind.MAXIMUM,
        (),
        "Age of what the log holds and the ledger does not have yet",
    )
    HELD_OUTCOMES = ("waypost_held_outcomes", MetricKind.GAUGE, (), "Outcomes that cannot be written")
    BREAKER = ("waypost_breaker_open", MetricKind.GAUGE, ("credential",), "1 while a breaker is not closed")
    SCOPES = (
        "waypost_scopes_open",
        MetricKind.GAUGE,
        ("credential",),
        "Topics or push services of a credential whose breakers are not closed",
    )
    DENIED = (
        "waypost_denied_total",
        MetricKind.COUNTER,
        ("credential", "reach"),
        "Refusals of ourselves, by how far they reach",
    )
    CREDENTIAL_ENDS = (
        "waypost_credential_ends_timestamp_seconds",
        MetricKind.GAUGE,
        ("credential",),
        "When a credential or certificate ends, UNIX time",
    )
    CREDENTIAL_REHEARSED = (
        "waypost_credential_rehearsed_timestamp_seconds",
        MetricKind.GAUGE,
        ("credential",),
        "When the renewal of a credential was last rehearsed, UNIX time",
    )
    CONNECTIONS = ("waypost_connections", MetricKind.GAUGE, ("credential",), "Open provider connections")
    CACHE_LOOKUPS = (
        "waypost_cache_lookups_total",
        MetricKind.COUNTER,
        ("cache", "result"),
        "Keys looked up in a cache, by what came of it",
    )
    WEBHOOKS_DISABLED = (
        "waypost_webhooks_disabled_total",
        MetricKind.COUNTER,
        ("app",),
        "URLs that are told no status changes for a day, as they answered 410",
    )
    REGISTRY_NODES_AWAY = (
        "waypost_registry_nodes_away",
        MetricKind.MAXIMUM,
        (),
        "Nodes of the registry of devices that take no connection",
    )
    BULK_FAILED = ("waypost_bulk_failed_total", MetricKind.COUNTER, ("app",), "Bulk jobs stopped as their walk failed")
    LOG_DROPPED = ("waypost_log_dropped_total", MetricKind.COUNTER, (), "Lines of the log dropped, as nobody read it")
    RECOVERED = (
        "waypost_recovered_total",
        MetricKind.COUNTER,
        ("app", "remedy"),
        "Notifications that nobody moved, by what was done about them",
    )
    ALERTS_RAISED = ("waypost_alerts_raised_total", MetricKind.COUNTER, ("app", "type"), "Alerts raised, by type")
    ALERTS_RESOLVED = ("waypost_alerts_resolved_total", MetricKind.COUNTER, ("app", "how"), "Alerts resolved, by how")
    EVENTS = (
        "waypost_notification_events_total",
        MetricKind.COUNTER,
        ("app", "event"),
        "Notifications sent, delivered, read, opened and acted on",
    )
    DEVICES_PER_USER = (
        "waypost_devices_per_user",
        MetricKind.MAXIMUM,
        ("app", "of"),
        "Active devices of a user who has some: the average and high percentiles",
    )
    EVICTED = ("waypost_tokens_evicted_total", MetricKind.COUNTER, (), "Dead tokens deactivated")
    ARCHIVED = ("waypost_archived_total", MetricKind.COUNTER, (), "Notifications that left the store for the archive")
    ARCHIVE_UNSOUND = (
        "waypost_archive_unsound_total",
        MetricKind.COUNTER,
        (),
        "Files of the archive met in a round, each minute, that are lost or not as they were written",
    )
    SHARDS = ("waypost_shards_owned", MetricKind.GAUGE, (), "Shards owned, 64 in all")

    def __init__(self, label: str, kind: MetricKind, labels: tuple[str, ...], meaning: str) -> None:
        self.label = label
        self.kind = kind
        self.labels = labels
        self.meaning = meaning
