"""The tables, as SQLAlchemy Core metadata; migrations/ makes a database have them.

Rows append in time order: ``notification`` by *seq*, on SQLite commit order since there is one writer at a time;
indexes cover the few open rows only, besides those by id, by user and by app. A receipt's key is (notification id, n).
Instants are milliseconds; statuses and kinds are the words of the domain's enums.
"""

from __future__ import annotations

from sqlalchemy import BLOB, Column, Index, Integer, MetaData, Table, Text, UniqueConstraint, text

metadata = MetaData()

notification = Table(
    "notification",
    metadata,
    Column("seq", Integer, primary_key=True),  # allocated from ``sequence``, or in blocks; never reused
    Column("id", BLOB, nullable=False),
    Column("app", Text, nullable=False),
    Column("caller", Text, nullable=False),
    Column("user_id", Text, nullable=False),
    Column("shard", Integer, nullable=False),
    Column("lane", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("urgency", Text, nullable=False),
    Column("guarantee", Text, nullable=False),
    Column("status", Text, nullable=False),  # pending or a final one; scheduled and processing are derived
    Column("due_at", Integer),  # 0: fresh, leasable now; > 0: to be routed then; NULL: routed, or final
    Column("created_at", Integer, nullable=False),
    Column("expires_at", Integer, nullable=False),
    Column("ttl_ms", Integer, nullable=False),
    Column("scheduled_at", Integer),
    Column("retry_policy", Text),
    Column("device_ids", Text),  # a JSON array; NULL: all of the user's
    Column("withdrawn", Text),  # why it was taken back
    Column("reason", Text),
    Column("finished_at", Integer),
    Column("round", Integer, nullable=False),
    Column("duplicate_of", BLOB),  # set on the small record that a content duplicate leaves; it has no content
    Column("job", Integer),  # of a bulk job's recipient: the job's number, under which its content is
    Column("variables", BLOB),  # msgpack of dict[str, str]: what fills the placeholders in the job's content
    Column("slice", Integer, nullable=False),  # the number of the history_slice; not on PostgreSQL
    Column("collapses", Integer),  # 1: its content has a collapse key; else NULL
    Index("notification_id", "id", unique=True),
    Index("notification_fresh", "lane", "app", "seq", "shard", sqlite_where=text("due_at = 0")),
    Index("notification_due", "lane", "due_at", "shard", sqlite_where=text("due_at > 0")),
    Index("notification_due_of_app", "lane", "app", "due_at", "shard", sqlite_where=text("due_at > 0")),
    Index("notification_history", "slice", "app", "user_id", "id"),
    Index("notification_of_app", "app", "id"),
    Index("notification_duplicates", "duplicate_of", sqlite_where=text("duplicate_of IS NOT NULL")),
    Index("notification_open", "id", sqlite_where=text("due_at IS NULL AND finished_at IS NULL")),  # routed and open
    Index(
        "notification_collapsing",
        "app",
        "user_id",
        "id",
        sqlite_where=text("collapses = 1 AND finished_at IS NULL"),
    ),
    Index("notification_of_job", "job", sqlite_where=text("job IS NOT NULL AND finished_at IS NULL")),
)

history_slice = Table(  # not on PostgreSQL
    "history_slice",
    metadata,
    Column("first", BLOB, primary_key=True),  # the ids from this one up to the next slice's are in it
    Column("number", Integer, nullable=False),
    Column("after_seq", Integer, nullable=False),  # the newest notification's when it was opened
    sqlite_with_rowid=False,
)

content = Table(
    "content",
    metadata,
    Column("seq", Integer, primary_key=True),  # its notification's, or the number of a bulk job
    Column("body", BLOB, nullable=False),  # msgpack of domain.notification.Content
)

receipt = Table(
    "receipt",
    metadata,
    Column("notification_id", BLOB, primary_key=True),
    Column("n", Integer, primary_key=True),
    Column("shard", Integer, nullable=False),
    Column("app", Text, nullable=False),
    Column("device_id", Text, nullable=False),
    Column("channel", Text),
    Column("status", Text, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("retries", Integer, nullable=False),
    Column("throttles", Integer, nullable=False),
    Column(
        "due_at", Integer
    ),  # set while open, unless its sibling is not settled yet; an ``unknown`` with a due time is an intent
    Column("parked", Text),
    Column("provider_id", Text),
    Column("code", Text),
    Column("failure_class", Text),
    Column("reason", Text),
    Column("dead", Integer, nullable=False),
    Column("first_attempt_at", Integer),
    Column("last_attempt_at", Integer),
    Column("sent_at", Integer),
    Column("resolved_at", Integer),
    Column("attempts", BLOB),  # msgpack of tuple[domain.delivery.Attempt, ...]; NULL: none
    Column("lane", Text),  # its notification's; NULL where the first attempt ended it
    Column("waits", BLOB),  # msgpack of domain.waits.Wait; NULL: it waits for nothing
    Index("receipt_due", "lane", "due_at", "shard", sqlite_where=text("due_at IS NOT NULL")),
    Index("receipt_due_of_app", "lane", "app", "due_at", "shard", sqlite_where=text("due_at IS NOT NULL")),
    Index("receipt_parked", "parked", "due_at", "shard", sqlite_where=text("parked IS NOT NULL")),
    Index("receipt_waiting", "lane", "app", sqlite_where=text("due_at IS NULL AND status = 'pending'")),
    Index("receipt_dead", "app", "notification_id", "n", sqlite_where=text("dead = 1")),
    sqlite_with_rowid=False,
)

dedup_slice = Table(
    "dedup_slice",
    metadata,
    Column("slice", Integer, primary_key=True),  # its keys are in the table ``dedup_<partition>``
    Column("until", Integer, nullable=False),  # no window in it ends later
)

journal = Table(
    "journal",
    metadata,
    Column("position", Integer, primary_key=True),
    Column("at", Integer, nullable=False),
    Column("moves", BLOB, nullable=False),  # msgpack of tuple[ports.journal.Moved, ...]
    sqlite_autoincrement=True,
)

reader = Table(
    "reader",
    metadata,
    Column("name", Text, primary_key=True),
    Column("position", Integer, nullable=False),
    sqlite_with_rowid=False,
)

counter = Table(
    "counter",
    metadata,
    Column("app", Text, primary_key=True),
    Column("lane", Text, primary_key=True),
    Column("hour", Integer, primary_key=True),  # hours since 1970; PostgreSQL: a part that one process moves at a time
    Column("status", Text, primary_key=True),  # of notifications, or another word of domain/balance.py
    Column("delta", Integer, nullable=False),  # how many came into this status less those that left it
    sqlite_with_rowid=False,
)

sequence = Table(
    "sequence",
    metadata,
    Column("name", Text, primary_key=True),
    Column("value", Integer, nullable=False),  # the last one given
    sqlite_with_rowid=False,
)

device = Table(
    "device",
    metadata,
    Column("app", Text, primary_key=True),
    Column("user_id", Text, primary_key=True),
    Column("device_id", Text, primary_key=True),
    Column("platform", Text, nullable=False),
    Column("token", Text, nullable=False),
    Column("token_hash", BLOB, nullable=False),  # domain.ids.token_hash
    Column("p256dh", BLOB),
    Column("auth", BLOB),
    Column("registered_at", Integer, nullable=False),
    Column("last_seen_at", Integer, nullable=False),
    Column("token_updated_at", Integer, nullable=False),
    Column("last_used_at", Integer),
    Column("app_version", Text),
    Column("os_version", Text),
    Column("locale", Text),
    Column("active", Integer, nullable=False),
    Column("token_use", Text, nullable=False),
    Column("deactivated_at", Integer),  # set while it is not active
    Index("device_token", "app", "token_hash", unique=True, sqlite_where=text("active = 1")),
    Index("device_inactive", "app", "deactivated_at", sqlite_where=text("active = 0")),
    Index("device_contact", "app", "token", sqlite_where=text("active = 1 AND platform IN ('email', 'phone')")),
    sqlite_with_rowid=False,
)

api_key = Table(
    "api_key",
    metadata,
    Column("prefix", Text, primary_key=True),
    Column("secret_hash", BLOB, nullable=False),
    Column("app", Text, nullable=False),
    Column("caller", Text, nullable=False),
    Column("created_at", Integer, nullable=False),
    Column("last_used_at", Integer),
    Column("revoked_at", Integer),
    sqlite_with_rowid=False,
)

key_terms = Table(
    "key_terms",
    metadata,
    Column("prefix", Text, primary_key=True),  # of ``api_key``; without a row, a key may do everything, for ever
    Column("scopes", Text),  # separated by spaces; NULL: every scope
    Column("expires_at", Integer),
    Column("made_for_ms", Integer),  # of a key that was replaced: the life it was given; 0: for ever
    sqlite_with_rowid=False,
)

bulk_job = Table(
    "bulk_job",
    metadata,
    Column("number", Integer, primary_key=True),  # from the same sequence as notifications
    Column("id", BLOB, nullable=False),
    Column("app", Text, nullable=False),
    Column("created_at", Integer, nullable=False),  # no two jobs have the same: the ids of recipients begin with it
    Column("key", BLOB),  # domain.dedup.idempotency_key, where its caller gave one
    Column("body_hash", BLOB, nullable=False),
    Column("job", BLOB, nullable=False),  # msgpack of domain.bulk.BulkJob without its content, which is in ``content``
    Column("state", Text, nullable=False),
    Column("walked_to", Text, nullable=False),  # the last user id that was enqueued; the next page begins after it
    Column("walked", Integer, nullable=False),  # 1: the end was reached
    Column("pieces", Integer, nullable=False),
    Column("total", Integer, nullable=False),  # recipients enqueued
    Column("left_out", Integer, nullable=False),  # those who had opted out, or were gone when their turn came
    Column("uploaded", Integer, nullable=False),  # recipients of the list
    Column("finished_at", Integer),
    Column("failure", Text),  # why it is, or was, failed
    Index("bulk_job_id", "id", unique=True),
    Index("bulk_job_created", "created_at", unique=True),
    Index("bulk_job_key", "key", unique=True, sqlite_where=text("key IS NOT NULL")),
    Index("bulk_job_of_app", "app", "id"),
    Index("bulk_job_open", "number", sqlite_where=text("finished_at IS NULL")),
)

bulk_recipient = Table(
    "bulk_recipient",
    metadata,
    Column("job", Integer, primary_key=True),
    Column("user_id", Text, primary_key=True),
    Column("variables", BLOB),  # msgpack of dict[str, str]; NULL: none
    sqlite_with_rowid=False,
)

bulk_piece = Table(
    "bulk_piece",
    metadata,
    Column("seq", Integer, primary_key=True),  # the order in which pieces of all jobs are leased
    Column("job", Integer, nullable=False),
    Column("n", Integer, nullable=False),
    Column("shard", Integer, nullable=False),
    Column("after_user", Text, nullable=False),
    Column("until_user", Text, nullable=False),  # the piece is the users above the one and up to the other
    Column("expected", Integer, nullable=False),  # recipients when it was enqueued
    Column("written", Integer, nullable=False),  # recipients that have their row
    Column("open", Integer, nullable=False),
    Index("bulk_piece_n", "job", "n", unique=True),
    Index("bulk_piece_open", "job", "seq", "shard", sqlite_where=text("open = 1")),
)

bulk_count = Table(
    "bulk_count",
    metadata,
    Column("job", Integer, primary_key=True),
    Column("status", Text, primary_key=True),
    Column("n", Integer, nullable=False),  # recipients' notifications in this stored status
    sqlite_with_rowid=False,
)

opt_out = Table(
    "opt_out",
    metadata,
    Column("app", Text, primary_key=True),
    Column("user_id", Text, primary_key=True),
    Column("at", Integer, nullable=False),
    sqlite_with_rowid=False,
)

feed_entry = Table(
    "feed_entry",
    metadata,
    Column("app", Text, primary_key=True),
    Column("user_id", Text, primary_key=True),
    Column("notification_id", BLOB, primary_key=True),  # its row may still be to come (in a log), or gone already
    Column("n", Integer),  # the number of the target that is the feed
    Column("place", Integer),  # the place in the feed; NULL: in none, marks alone
    Column("shown_at", Integer),
    Column("seen_at", Integer),
    Column("read_at", Integer),
    Column("archived_at", Integer),
    Column("hidden_at", Integer),
    UniqueConstraint("notification_id"),
    UniqueConstraint("app", "user_id", "place"),
    Index("feed_entry_hidden", "notification_id", sqlite_where=text("hidden_at IS NOT NULL")),
    sqlite_with_rowid=False,
)

outbox = Table(
    "outbox",
    metadata,
    Column("seq", Integer, primary_key=True),  # the order in which entries are published
    Column("notification_id", BLOB, nullable=False),
    Column("n", Integer, nullable=False),  # -1: the notification whole; else a target that is due
    Column("app", Text, nullable=False),
    Column("lane", Text, nullable=False),
    Column("added_at", Integer, nullable=False),
    Column("due_at", Integer),  # NULL: it may be sent now; else it tells that it waits until then
    Column("claimed_by", Integer),  # the member that publishes it, or did
    Column("claimed_at", Integer),
    Column("published_at", Integer),
    Index("outbox_pending", "seq", sqlite_where=text("published_at IS NULL")),
)

erasure = Table(
    "erasure",
    metadata,
    Column("id", BLOB, primary_key=True),
    Column("app", Text, nullable=False),
    Column("user_id", Text),  # NULL once it is carried out
    Column("tombstone", Text, nullable=False),  # what stands in the place of the user
    Column("asked_at", Integer, nullable=False),
    Column("finished_at", Integer),
    Index("erasure_standing", "app", "user_id", unique=True, sqlite_where=text("finished_at IS NULL")),
    sqlite_with_rowid=False,
)

audit = Table(
    "audit",
    metadata,
    Column("seq", Integer, primary_key=True),
    Column("at", Integer, nullable=False),
    Column("app", Text, nullable=False),
    Column("ordered_by", Text, nullable=False),
    Column("origin", Text, nullable=False),
    Column("act", Text, nullable=False),
    Column("subject", Text, nullable=False),
    Index("audit_of_app", "app", "seq"),
    Index("audit_of_act", "app", "act", "seq"),
    Index("audit_of_who", "app", "ordered_by", "seq"),
    Index("audit_of_act_and_who", "app", "act", "ordered_by", "seq"),
    Index("audit_age", "at"),
    sqlite_autoincrement=True,
)
