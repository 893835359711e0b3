"""PostgreSQL: the schema so far, laid out for it; SQLite has it already.

Revision ID: 0004
Revises: 0003
"""

from __future__ import annotations

from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

# text is compared byte by byte, as Python and SQLite do. Rows that are changed again and again leave room beside them,
# so that the new version fits on the same page and no index has to learn of it.
_TABLES = """\
CREATE TABLE notification (
    seq bigint NOT NULL, id bytea PRIMARY KEY, app text NOT NULL, caller text NOT NULL, user_id text NOT NULL,
    shard bigint NOT NULL, lane text NOT NULL, kind text NOT NULL, urgency text NOT NULL, guarantee text NOT NULL,
    status text NOT NULL, due_at bigint, created_at bigint NOT NULL, expires_at bigint NOT NULL,
    ttl_ms bigint NOT NULL, scheduled_at bigint, retry_policy text, device_ids text, withdrawn text, reason text,
    finished_at bigint, round bigint NOT NULL, duplicate_of bytea, job bigint, variables bytea
) PARTITION BY RANGE (id);
CREATE INDEX notification_fresh ON notification (lane, app, seq, shard) WHERE due_at = 0;
CREATE INDEX notification_due ON notification (lane, due_at, shard, seq) WHERE due_at > 0;
CREATE INDEX notification_history ON notification (app, user_id, id);
CREATE INDEX notification_duplicates ON notification (duplicate_of) WHERE duplicate_of IS NOT NULL;
CREATE INDEX notification_of_job ON notification (job) WHERE job IS NOT NULL AND finished_at IS NULL;
CREATE TABLE notification_rest PARTITION OF notification DEFAULT;

CREATE TABLE content (seq bigint PRIMARY KEY, body bytea NOT NULL) PARTITION BY RANGE (seq);
CREATE TABLE content_rest PARTITION OF content DEFAULT;

CREATE TABLE receipt (
    notification_id bytea NOT NULL, n bigint NOT NULL, shard bigint NOT NULL, app text NOT NULL,
    device_id text NOT NULL, channel text, status text NOT NULL, attempt bigint NOT NULL, retries bigint NOT NULL,
    throttles bigint NOT NULL, due_at bigint, parked text, provider_id text, code text, failure_class text,
    reason text, dead bigint NOT NULL, first_attempt_at bigint, last_attempt_at bigint, sent_at bigint,
    resolved_at bigint, attempts bytea, lane text, PRIMARY KEY (notification_id, n)
) PARTITION BY RANGE (notification_id);
CREATE INDEX receipt_due ON receipt (lane, due_at, shard, notification_id, n) WHERE due_at IS NOT NULL;
CREATE INDEX receipt_parked ON receipt (parked, due_at, shard, notification_id, n) WHERE parked IS NOT NULL;
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
    active bigint NOT NULL, token_use text NOT NULL, PRIMARY KEY (app, user_id, device_id)
) WITH (fillfactor = 85);
CREATE UNIQUE INDEX device_token ON device (app, token_hash) WHERE active = 1;
CREATE TABLE api_key (
    prefix text PRIMARY KEY, secret_hash bytea NOT NULL, app text NOT NULL, caller text NOT NULL,
    created_at bigint NOT NULL, last_used_at bigint, revoked_at bigint
);

CREATE TABLE bulk_job (
    number bigint PRIMARY KEY, id bytea NOT NULL UNIQUE, app text NOT NULL, created_at bigint NOT NULL UNIQUE,
    key bytea, body_hash bytea NOT NULL, job bytea NOT NULL, state text NOT NULL, walked_to text NOT NULL,
    walked bigint NOT NULL, pieces bigint NOT NULL, total bigint NOT NULL, left_out bigint NOT NULL,
    uploaded bigint NOT NULL, finished_at bigint
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

CREATE TABLE member (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, place text NOT NULL, pid bigint NOT NULL,
    started bigint NOT NULL, shares boolean NOT NULL DEFAULT false, until timestamptz NOT NULL
) WITH (fillfactor = 20);
CREATE TABLE ownership (
    name text PRIMARY KEY, shard bigint UNIQUE, member bigint REFERENCES member ON DELETE SET NULL
) WITH (fillfactor = 20);
CREATE INDEX ownership_member ON ownership (member);
INSERT INTO ownership (name, shard) SELECT 'shard-' || lpad(n::text, 2, '0'), n FROM generate_series(0, 63) AS n;
"""


def upgrade() -> None:
    """Make every table; schema.py says what they mean."""
    if op.get_bind().dialect.name == "postgresql":
        for statement in _TABLES.replace(" text", ' text COLLATE "C"').split(";\n"):
            if statement.strip():
                op.execute(statement)


def downgrade() -> None:
    """Refuse: there is nothing before this on PostgreSQL, and nothing in it on SQLite."""
    raise NotImplementedError("restore a backup instead")
