"""The first schema; schema.py says what the tables mean.

Revision ID: 0001
Revises: nothing
"""

from __future__ import annotations

from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_SQLITE = """\
CREATE TABLE notification (
    seq INTEGER NOT NULL PRIMARY KEY, id BLOB NOT NULL, app TEXT NOT NULL, caller TEXT NOT NULL,
    user_id TEXT NOT NULL, shard INTEGER NOT NULL, lane TEXT NOT NULL, kind TEXT NOT NULL, urgency TEXT NOT NULL,
    guarantee TEXT NOT NULL, status TEXT NOT NULL, due_at INTEGER, created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL, ttl_ms INTEGER NOT NULL, scheduled_at INTEGER, retry_policy TEXT, device_ids TEXT,
    withdrawn TEXT, reason TEXT, finished_at INTEGER, round INTEGER NOT NULL, duplicate_of BLOB, job INTEGER,
    variables BLOB, slice INTEGER NOT NULL DEFAULT 0, collapses INTEGER
);
CREATE TABLE history_slice (
    first BLOB NOT NULL PRIMARY KEY, number INTEGER NOT NULL, after_seq INTEGER NOT NULL
) WITHOUT ROWID;
INSERT INTO history_slice (first, number, after_seq) VALUES (x'', 0, 0);
CREATE UNIQUE INDEX notification_id ON notification (id);
CREATE INDEX notification_fresh ON notification (lane, app, seq, shard) WHERE due_at = 0;
CREATE INDEX notification_due ON notification (lane, due_at, shard) WHERE due_at > 0;
CREATE INDEX notification_due_of_app ON notification (lane, app, due_at, shard) WHERE due_at > 0;
CREATE INDEX notification_history ON notification (slice, app, user_id, id);
CREATE INDEX notification_of_app ON notification (app, id);
CREATE INDEX notification_duplicates ON notification (duplicate_of) WHERE duplicate_of IS NOT NULL;
CREATE INDEX notification_of_job ON notification (job) WHERE job IS NOT NULL AND finished_at IS NULL;
CREATE INDEX notification_open ON notification (id) WHERE due_at IS NULL AND finished_at IS NULL;
CREATE INDEX notification_collapsing ON notification (app, user_id, id) WHERE collapses = 1 AND finished_at IS NULL;

CREATE TABLE content (seq INTEGER NOT NULL PRIMARY KEY, body BLOB NOT NULL);

CREATE TABLE receipt (
    notification_id BLOB NOT NULL, n INTEGER NOT NULL, shard INTEGER NOT NULL, app TEXT NOT NULL,
    device_id TEXT NOT NULL, channel TEXT, status TEXT NOT NULL, attempt INTEGER NOT NULL, retries INTEGER NOT NULL,
    throttles INTEGER NOT NULL, due_at INTEGER, parked TEXT, provider_id TEXT, code TEXT, failure_class TEXT,
    reason TEXT, dead INTEGER NOT NULL, first_attempt_at INTEGER, last_attempt_at INTEGER, sent_at INTEGER,
    resolved_at INTEGER, attempts BLOB, lane TEXT, waits BLOB,
    PRIMARY KEY (notification_id, n)
) WITHOUT ROWID;
CREATE INDEX receipt_due ON receipt (lane, due_at, shard) WHERE due_at IS NOT NULL;
CREATE INDEX receipt_due_of_app ON receipt (lane, app, due_at, shard) WHERE due_at IS NOT NULL;
CREATE INDEX receipt_parked ON receipt (parked, due_at, shard) WHERE parked IS NOT NULL;
CREATE INDEX receipt_waiting ON receipt (lane, app) WHERE due_at IS NULL AND status = 'pending';
CREATE INDEX receipt_dead ON receipt (app, notification_id, n) WHERE dead = 1;

CREATE TABLE dedup_slice (slice INTEGER NOT NULL PRIMARY KEY, until INTEGER NOT NULL);
CREATE TABLE journal (position INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, at INTEGER NOT NULL, moves BLOB NOT NULL);
CREATE TABLE reader (name TEXT NOT NULL PRIMARY KEY, position INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE counter (
    app TEXT NOT NULL, lane TEXT NOT NULL, hour INTEGER NOT NULL, status TEXT NOT NULL, delta INTEGER NOT NULL,
    PRIMARY KEY (app, lane, hour, status)
) WITHOUT ROWID;
CREATE TABLE sequence (name TEXT NOT NULL PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
INSERT INTO sequence (name, value) VALUES ('notification', 0);
CREATE TABLE device (
    app TEXT NOT NULL, user_id TEXT NOT NULL, device_id TEXT NOT NULL, platform TEXT NOT NULL, token TEXT NOT NULL,
    token_hash BLOB NOT NULL, p256dh BLOB, auth BLOB, registered_at INTEGER NOT NULL, last_seen_at INTEGER NOT NULL,
    token_updated_at INTEGER NOT NULL, last_used_at INTEGER, app_version TEXT, os_version TEXT, locale TEXT,
    active INTEGER NOT NULL, token_use TEXT NOT NULL, deactivated_at INTEGER,
    PRIMARY KEY (app, user_id, device_id)
) WITHOUT ROWID;
CREATE UNIQUE INDEX device_token ON device (app, token_hash) WHERE active = 1;
CREATE INDEX device_inactive ON device (app, deactivated_at) WHERE active = 0;
CREATE INDEX device_contact ON device (app, token) WHERE active = 1 AND platform IN ('email', 'phone');
CREATE TABLE api_key (
    prefix TEXT NOT NULL PRIMARY KEY, secret_hash BLOB NOT NULL, app TEXT NOT NULL, caller TEXT NOT NULL,
    created_at INTEGER NOT NULL, last_used_at INTEGER, revoked_at INTEGER
) WITHOUT ROWID;
CREATE TABLE key_terms (
    prefix TEXT NOT NULL PRIMARY KEY, scopes TEXT, expires_at INTEGER, made_for_ms INTEGER
) WITHOUT ROWID;

CREATE TABLE bulk_job (
    number INTEGER NOT NULL PRIMARY KEY, id BLOB NOT NULL, app TEXT NOT NULL, created_at INTEGER NOT NULL, key BLOB,
    body_hash BLOB NOT NULL, job BLOB NOT NULL, state TEXT NOT NULL, walked_to TEXT NOT NULL,
    walked INTEGER NOT NULL, pieces INTEGER NOT NULL, total INTEGER NOT NULL, left_out INTEGER NOT NULL,
    uploaded INTEGER NOT NULL, finished_at INTEGER, failure TEXT
);
CREATE UNIQUE INDEX bulk_job_id ON bulk_job (id);
CREATE UNIQUE INDEX bulk_job_created ON bulk_job (created_at);
CREATE UNIQUE INDEX bulk_job_key ON bulk_job (key) WHERE key IS NOT NULL;
CREATE INDEX bulk_job_of_app ON bulk_job (app, id);
CREATE INDEX bulk_job_open ON bulk_job (number) WHERE finished_at IS NULL;
CREATE TABLE bulk_recipient (
    job INTEGER NOT NULL, user_id TEXT NOT NULL, variables BLOB, PRIMARY KEY (job, user_id)
) WITHOUT ROWID;
CREATE TABLE bulk_piece (
    seq INTEGER NOT NULL PRIMARY KEY, job INTEGER NOT NULL, n INTEGER NOT NULL, shard INTEGER NOT NULL,
    after_user TEXT NOT NULL, until_user TEXT NOT NULL, expected INTEGER NOT NULL, written INTEGER NOT NULL,
    open INTEGER NOT NULL
);
CREATE UNIQUE INDEX bulk_piece_n ON bulk_piece (job, n);
CREATE INDEX bulk_piece_open ON bulk_piece (job, seq, shard) WHERE open = 1;
CREATE TABLE bulk_count (
    job INTEGER NOT NULL, status TEXT NOT NULL, n INTEGER NOT NULL, PRIMARY KEY (job, status)
) WITHOUT ROWID;
CREATE TABLE opt_out (
    app TEXT NOT NULL, user_id TEXT NOT NULL, at INTEGER NOT NULL, PRIMARY KEY (app, user_id)
) WITHOUT ROWID;
CREATE TABLE feed_entry (
    app TEXT NOT NULL, user_id TEXT NOT NULL, notification_id BLOB NOT NULL, n INTEGER, place INTEGER,
    shown_at INTEGER, seen_at INTEGER, read_at INTEGER, archived_at INTEGER, hidden_at INTEGER,
    PRIMARY KEY (app, user_id, notification_id), UNIQUE (notification_id), UNIQUE (app, user_id, place)
) WITHOUT ROWID;
CREATE INDEX feed_entry_hidden ON feed_entry (notification_id) WHERE hidden_at IS NOT NULL;
CREATE TABLE erasure (
    id BLOB NOT NULL PRIMARY KEY, app TEXT NOT NULL, user_id TEXT, tombstone TEXT NOT NULL, asked_at INTEGER NOT NULL,
    finished_at INTEGER
) WITHOUT ROWID;
CREATE UNIQUE INDEX erasure_standing ON erasure (app, user_id) WHERE finished_at IS NULL;
CREATE TABLE audit (
    seq INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL, at INTEGER NOT NULL, app TEXT NOT NULL, ordered_by TEXT NOT NULL,
    origin TEXT NOT NULL, act TEXT NOT NULL, subject TEXT NOT NULL
);
CREATE INDEX audit_of_app ON audit (app, seq);
CREATE INDEX audit_of_act ON audit (app, act, seq);
CREATE INDEX audit_of_who ON audit (app, ordered_by, seq);
CREATE INDEX audit_of_act_and_who ON audit (app, act, ordered_by, seq);
CREATE INDEX audit_age ON audit (at);

CREATE TABLE outbox (
    seq INTEGER NOT NULL PRIMARY KEY, notification_id BLOB NOT NULL, n INTEGER NOT NULL, app TEXT NOT NULL,
    lane TEXT NOT NULL, added_at INTEGER NOT NULL, due_at INTEGER, claimed_by INTEGER, claimed_at INTEGER,
    published_at INTEGER
);
CREATE INDEX outbox_pending ON outbox (seq) WHERE published_at IS NULL;
"""

# Rows that are changed again and again leave room beside them, so that the new version fits on the same page and no
# index has to learn of it. What is leased and who commits what is in tables: there are several writers.
_POSTGRES = """\
CREATE TABLE notification (
    seq bigint NOT NULL, id bytea PRIMARY KEY, app text NOT NULL, caller text NOT NULL, user_id text NOT NULL,
    shard bigint NOT NULL, lane text NOT NULL, kind text NOT NULL, urgency text NOT NULL, guarantee text NOT NULL,
    status text NOT NULL, due_at bigint, created_at bigint NOT NULL, expires_at bigint NOT NULL,
    ttl_ms bigint NOT NULL, scheduled_at bigint, retry_policy text, device_ids text, withdrawn text, reason text,
    finished_at bigint, round bigint NOT NULL, duplicate_of bytea, job bigint, variables bytea, collapses bigint
) PARTITION BY RANGE (id);
CREATE INDEX notification_fresh ON notification (lane, app, seq, shard) WHERE due_at = 0;
CREATE INDEX notification_due ON notification (lane, due_at, shard, seq) WHERE due_at > 0;
CREATE INDEX notification_due_of_app ON notification (lane, app, due_at, shard, seq) WHERE due_at > 0;
CREATE INDEX notification_history ON notification (app, user_id, id);
CREATE INDEX notification_of_app ON notification (app, id);
CREATE INDEX notification_duplicates ON notification (duplicate_of) WHERE duplicate_of IS NOT NULL;
CREATE INDEX notification_of_job ON notification (job) WHERE job IS NOT NULL AND finished_at IS NULL;
CREATE INDEX notification_open ON notification (id) WHERE due_at IS NULL AND finished_at IS NULL;
CREATE INDEX notification_collapsing ON notification (app, user_id, id) WHERE collapses = 1 AND finished_at IS NULL;
CREATE TABLE notification_rest PARTITION OF notification DEFAULT;

CREATE TABLE content (seq bigint PRIMARY KEY, body bytea NOT NULL) PARTITION BY RANGE (seq);
CREATE TABLE content_rest PARTITION OF content DEFAULT;

CREATE TABLE receipt (
    notification_id bytea NOT NULL, n bigint NOT NULL, shard bigint NOT NULL, app text NOT NULL,
    device_id text NOT NULL, channel text, status text NOT NULL, attempt bigint NOT NULL, retries bigint NOT NULL,
    throttles bigint NOT NULL, due_at bigint, parked text, provider_id text, code text, failure_class text,
    reason text, dead bigint NOT NULL, first_attempt_at bigint, last_attempt_at bigint, sent_at bigint,
    resolved_at bigint, attempts bytea, lane text, waits bytea,
    PRIMARY KEY (notification_id, n)
) PARTITION BY RANGE (notification_id);
CREATE INDEX receipt_due ON receipt (lane, due_at, shard, notification_id, n) WHERE due_at IS NOT NULL;
CREATE INDEX receipt_due_of_app ON receipt (lane, app, due_at, shard, notification_id, n) WHERE due_at IS NOT NULL;
CREATE INDEX receipt_parked ON receipt (parked, due_at, shard, notification_id, n) WHERE parked IS NOT NULL;
CREATE INDEX receipt_waiting ON receipt (lane, app) WHERE due_at IS NULL AND status = 'pending';
CREATE INDEX receipt_dead ON receipt (app, notification_id, n) WHERE dead = 1;
CREATE TABLE receipt_rest PARTITION OF receipt DEFAULT;

CREATE TABLE dedup_slice (slice bigint PRIMARY KEY, until bigint NOT NULL);
CREATE TABLE journal (
    position bigint PRIMARY KEY DEFAULT pg_current_xact_id()::text::bigint,
    at bigint NOT NULL, moves bytea NOT NULL
);
CREATE TABLE reader (name text PRIMARY KEY, position bigint NOT NULL) WITH (fillfactor = 20);
CREATE TABLE counter (
    app text NOT NULL, lane text NOT NULL, hour bigint NOT NULL, status text NOT NULL, delta bigint NOT NULL,
    PRIMARY KEY (app, lane, hour, status)
) WITH (fillfactor = 20);
CREATE TABLE sequence (name text PRIMARY KEY, value bigint NOT NULL) WITH (fillfactor = 20);
INSERT INTO sequence (name, value) VALUES ('notification', 0);
CREATE TABLE device (
    app text NOT NULL, user_id text NOT NULL, device_id text NOT NULL, platform text NOT NULL, token text NOT NULL,
    token_hash bytea NOT NULL, p256dh bytea, auth bytea, registered_at bigint NOT NULL, last_seen_at bigint NOT NULL,
    token_updated_at bigint NOT NULL, last_used_at bigint, app_version text, os_version text, locale text,
    active bigint NOT NULL, token_use text NOT NULL, deactivated_at bigint, PRIMARY KEY (app, user_id, device_id)
) WITH (fillfactor = 85);
CREATE UNIQUE INDEX device_token ON device (app, token_hash) WHERE active = 1;
CREATE INDEX device_inactive ON device (app, deactivated_at) WHERE active = 0;
CREATE INDEX device_contact ON device (app, token) WHERE active = 1 AND platform IN ('email', 'phone');
CREATE TABLE api_key (
    prefix text PRIMARY KEY, secret_hash bytea NOT NULL, app text NOT NULL, caller text NOT NULL,
    created_at bigint NOT NULL, last_used_at bigint, revoked_at bigint
);
CREATE TABLE key_terms (prefix text PRIMARY KEY, scopes text, expires_at bigint, made_for_ms bigint);

CREATE TABLE bulk_job (
    number bigint PRIMARY KEY, id bytea NOT NULL UNIQUE, app text NOT NULL, created_at bigint NOT NULL UNIQUE,
    key bytea, body_hash bytea NOT NULL, job bytea NOT NULL, state text NOT NULL, walked_to text NOT NULL,
    walked bigint NOT NULL, pieces bigint NOT NULL, total bigint NOT NULL, left_out bigint NOT NULL,
    uploaded bigint NOT NULL, finished_at bigint, failure text
) WITH (fillfactor = 50);
CREATE UNIQUE INDEX bulk_job_key ON bulk_job (key) WHERE key IS NOT NULL;
CREATE INDEX bulk_job_of_app ON bulk_job (app, id);
CREATE INDEX bulk_job_open ON bulk_job (number) WHERE finished_at IS NULL;
CREATE TABLE bulk_recipient (
    job bigint NOT NULL, user_id text NOT NULL, variables bytea, PRIMARY KEY (job, user_id)
);
CREATE TABLE bulk_piece (
    seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, job bigint NOT NULL, n bigint NOT NULL,
    shard bigint NOT NULL, after_user text NOT NULL, until_user text NOT NULL, expected bigint NOT NULL,
    written bigint NOT NULL, open bigint NOT NULL
) WITH (fillfactor = 50);
CREATE UNIQUE INDEX bulk_piece_n ON bulk_piece (job, n);
CREATE INDEX bulk_piece_open ON bulk_piece (job, seq, shard) WHERE open = 1;
CREATE TABLE bulk_count (
    job bigint NOT NULL, status text NOT NULL, n bigint NOT NULL, PRIMARY KEY (job, status)
) WITH (fillfactor = 20);
CREATE TABLE opt_out (app text NOT NULL, user_id text NOT NULL, at bigint NOT NULL, PRIMARY KEY (app, user_id));
CREATE TABLE feed_entry (
    app text NOT NULL, user_id text NOT NULL, notification_id bytea NOT NULL, n bigint, place bigint,
    shown_at bigint, seen_at bigint, read_at bigint, archived_at bigint, hidden_at bigint,
    PRIMARY KEY (app, user_id, notification_id), UNIQUE (notification_id), UNIQUE (app, user_id, place)
);
CREATE INDEX feed_entry_hidden ON feed_entry (notification_id) WHERE hidden_at IS NOT NULL;
CREATE TABLE erasure (
    id bytea PRIMARY KEY, app text NOT NULL, user_id text, tombstone text NOT NULL, asked_at bigint NOT NULL,
    finished_at bigint
);
CREATE UNIQUE INDEX erasure_standing ON erasure (app, user_id) WHERE finished_at IS NULL;
CREATE TABLE audit (
    seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, at bigint NOT NULL, app text NOT NULL,
    ordered_by text NOT NULL, origin text NOT NULL, act text NOT NULL, subject text NOT NULL
);
CREATE INDEX audit_of_app ON audit (app, seq);
CREATE INDEX audit_of_act ON audit (app, act, seq);
CREATE INDEX audit_of_who ON audit (app, ordered_by, seq);
CREATE INDEX audit_of_act_and_who ON audit (app, act, ordered_by, seq);
CREATE INDEX audit_age ON audit (at);

CREATE TABLE outbox (
    seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, notification_id bytea NOT NULL, n bigint NOT NULL,
    app text NOT NULL, lane text NOT NULL, added_at bigint NOT NULL, due_at bigint, claimed_by bigint,
    claimed_at bigint, published_at bigint
) WITH (fillfactor = 50);
CREATE INDEX outbox_pending ON outbox (seq) WHERE published_at IS NULL;

CREATE TABLE member (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, place text NOT NULL, pid bigint NOT NULL,
    started bigint NOT NULL, shares boolean NOT NULL DEFAULT false, until timestamptz NOT NULL
) WITH (fillfactor = 20);
CREATE TABLE ownership (
    name text PRIMARY KEY, shard bigint UNIQUE, member bigint REFERENCES member ON DELETE SET NULL
) WITH (fillfactor = 20);
CREATE INDEX ownership_member ON ownership (member);
INSERT INTO ownership (name, shard) SELECT 'shard-' || lpad(n::text, 2, '0'), n FROM generate_series(0, 63) AS n;
CREATE SEQUENCE number_block;
CREATE TABLE arrival (
    tx bigint PRIMARY KEY DEFAULT pg_current_xact_id()::text::bigint, first_seq bigint NOT NULL,
    last_seq bigint NOT NULL, fresh text NOT NULL
);
CREATE TABLE tail (name text PRIMARY KEY, place text NOT NULL) WITH (fillfactor = 20);
CREATE TABLE claim (
    notification_id bytea NOT NULL, n bigint NOT NULL, seq bigint GENERATED ALWAYS AS IDENTITY, app text NOT NULL,
    lane text NOT NULL, free_at bigint NOT NULL, holder bigint, PRIMARY KEY (notification_id, n)
);
CREATE INDEX claim_free ON claim (lane, free_at, seq) WHERE holder IS NULL;
CREATE INDEX claim_held ON claim (holder) WHERE holder IS NOT NULL;
CREATE TABLE writer (
    nonce uuid PRIMARY KEY, batch bigint NOT NULL, at timestamptz NOT NULL
) WITH (fillfactor = 20);
"""


def upgrade() -> None:
    """Make every table; on PostgreSQL text is compared byte by byte, as Python and SQLite do."""
    is_postgres = op.get_bind().dialect.name == "postgresql"
    made = _POSTGRES.replace(" text", ' text COLLATE "C"') if is_postgres else _SQLITE
    for statement in made.split(";\n"):
        if statement.strip():
            op.execute(statement)


def downgrade() -> None:
    """Refuse: there is nothing before this."""
    raise NotImplementedError("restore a backup instead")
