"""The first schema.

Revision ID: 0001
Revises: nothing
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make every table; schema.py says what they mean."""
    if op.get_bind().dialect.name == "postgresql":
        return  # 0004 makes it all
    _api_key()
    _content()
    _counter()
    _dedup_slice()
    _device()
    _journal()
    _notification()
    _reader()
    _receipt()
    _sequence()
    op.execute("INSERT INTO sequence (name, value) VALUES ('notification', 0)")


def downgrade() -> None:
    """Refuse: there is nothing before this."""
    raise NotImplementedError("restore a backup instead")


def _api_key() -> None:
    op.create_table(
        "api_key",
        sa.Column("prefix", sa.Text(), nullable=False),
        sa.Column("secret_hash", sa.BLOB(), nullable=False),
        sa.Column("app", sa.Text(), nullable=False),
        sa.Column("caller", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Integer(), nullable=False),
        sa.Column("last_used_at", sa.Integer(), nullable=True),
        sa.Column("revoked_at", sa.Integer(), nullable=True),
        sa.PrimaryKeyConstraint("prefix"),
        sqlite_with_rowid=False,
    )


def _content() -> None:
    op.create_table(
        "content",
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.Column("body", sa.BLOB(), nullable=False),
        sa.PrimaryKeyConstraint("seq"),
    )


def _counter() -> None:
    op.create_table(
        "counter",
        sa.Column("app", sa.Text(), nullable=False),
        sa.Column("lane", sa.Text(), nullable=False),
        sa.Column("hour", sa.Integer(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("delta", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("app", "lane", "hour", "status"),
        sqlite_with_rowid=False,
    )


def _dedup_slice() -> None:
    op.create_table(
        "dedup_slice",
        sa.Column("slice", sa.Integer(), nullable=False),
        sa.Column("until", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("slice"),
    )


def _device() -> None:
    op.create_table(
        "device",
        sa.Column("app", sa.Text(), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column("device_id", sa.Text(), nullable=False),
        sa.Column("platform", sa.Text(), nullable=False),
        sa.Column("token", sa.Text(), nullable=False),
        sa.Column("token_hash", sa.BLOB(), nullable=False),
        sa.Column("p256dh", sa.BLOB(), nullable=True),
        sa.Column("auth", sa.BLOB(), nullable=True),
        sa.Column("registered_at", sa.Integer(), nullable=False),
        sa.Column("last_seen_at", sa.Integer(), nullable=False),
        sa.Column("token_updated_at", sa.Integer(), nullable=False),
        sa.Column("last_used_at", sa.Integer(), nullable=True),
        sa.Column("app_version", sa.Text(), nullable=True),
        sa.Column("os_version", sa.Text(), nullable=True),
        sa.Column("locale", sa.Text(), nullable=True),
        sa.Column("active", sa.Integer(), nullable=False),
        sa.Column("token_use", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("app", "user_id", "device_id"),
        sqlite_with_rowid=False,
    )
    op.create_index("device_token", "device", ["app", "token_hash"], unique=True, sqlite_where=sa.text("active = 1"))


def _journal() -> None:
    op.create_table(
        "journal",
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("at", sa.Integer(), nullable=False),
        sa.Column("moves", sa.BLOB(), nullable=False),
        sa.PrimaryKeyConstraint("position"),
        sqlite_autoincrement=True,
    )


def _notification() -> None:
    op.create_table(
        "notification",
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.Column("id", sa.BLOB(), nullable=False),
        sa.Column("app", sa.Text(), nullable=False),
        sa.Column("caller", sa.Text(), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column("shard", sa.Integer(), nullable=False),
        sa.Column("lane", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("urgency", sa.Text(), nullable=False),
        sa.Column("guarantee", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("due_at", sa.Integer(), nullable=True),
        sa.Column("created_at", sa.Integer(), nullable=False),
        sa.Column("expires_at", sa.Integer(), nullable=False),
        sa.Column("ttl_ms", sa.Integer(), nullable=False),
        sa.Column("scheduled_at", sa.Integer(), nullable=True),
        sa.Column("retry_policy", sa.Text(), nullable=True),
        sa.Column("device_ids", sa.Text(), nullable=True),
        sa.Column("withdrawn", sa.Text(), nullable=True),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("finished_at", sa.Integer(), nullable=True),
        sa.Column("round", sa.Integer(), nullable=False),
        sa.Column("duplicate_of", sa.BLOB(), nullable=True),
        sa.PrimaryKeyConstraint("seq"),
    )
    op.create_index(
        "notification_due", "notification", ["due_at", "shard"], unique=False, sqlite_where=sa.text("due_at > 0")
    )
    op.create_index(
        "notification_duplicates",
        "notification",
        ["duplicate_of"],
        unique=False,
        sqlite_where=sa.text("duplicate_of IS NOT NULL"),
    )
    op.create_index(
        "notification_fresh",
        "notification",
        ["lane", "app", "seq", "shard"],
        unique=False,
        sqlite_where=sa.text("due_at = 0"),
    )
    op.create_index("notification_history", "notification", ["app", "user_id", "id"], unique=False)
    op.create_index("notification_id", "notification", ["id"], unique=True)


def _reader() -> None:
    op.create_table(
        "reader",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("name"),
        sqlite_with_rowid=False,
    )


def _receipt() -> None:
    op.create_table(
        "receipt",
        sa.Column("notification_id", sa.BLOB(), nullable=False),
        sa.Column("n", sa.Integer(), nullable=False),
        sa.Column("shard", sa.Integer(), nullable=False),
        sa.Column("app", sa.Text(), nullable=False),
        sa.Column("device_id", sa.Text(), nullable=False),
        sa.Column("channel", sa.Text(), nullable=True),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("retries", sa.Integer(), nullable=False),
        sa.Column("throttles", sa.Integer(), nullable=False),
        sa.Column("due_at", sa.Integer(), nullable=True),
        sa.Column("parked", sa.Text(), nullable=True),
        sa.Column("provider_id", sa.Text(), nullable=True),
        sa.Column("code", sa.Text(), nullable=True),
        sa.Column("failure_class", sa.Text(), nullable=True),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("dead", sa.Integer(), nullable=False),
        sa.Column("first_attempt_at", sa.Integer(), nullable=True),
        sa.Column("last_attempt_at", sa.Integer(), nullable=True),
        sa.Column("sent_at", sa.Integer(), nullable=True),
        sa.Column("resolved_at", sa.Integer(), nullable=True),
        sa.Column("attempts", sa.BLOB(), nullable=True),
        sa.PrimaryKeyConstraint("notification_id", "n"),
        sqlite_with_rowid=False,
    )
    op.create_index(
        "receipt_dead", "receipt", ["app", "notification_id", "n"], unique=False, sqlite_where=sa.text("dead = 1")
    )
    op.create_index(
        "receipt_due", "receipt", ["due_at", "shard"], unique=False, sqlite_where=sa.text("due_at IS NOT NULL")
    )
    op.create_index(
        "receipt_parked",
        "receipt",
        ["parked", "due_at", "shard"],
        unique=False,
        sqlite_where=sa.text("parked IS NOT NULL"),
    )


def _sequence() -> None:
    op.create_table(
        "sequence",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("value", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("name"),
        sqlite_with_rowid=False,
    )
