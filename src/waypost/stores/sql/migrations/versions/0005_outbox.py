"""The outbox, and who has leased what stands in it.

Revision ID: 0005
Revises: 0004
"""

from __future__ import annotations

from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

_TABLE = """\
CREATE TABLE outbox (
    seq {key}, notification_id {blob} NOT NULL, n {number} NOT NULL, app {text} NOT NULL, lane {text} NOT NULL,
    added_at {number} NOT NULL, claimed_by {number}, claimed_at {number}, published_at {number},
    again_at {number} NOT NULL, holder {number}, handed {number} NOT NULL DEFAULT 0, done_at {number}
){layout}
"""
_INDEXES = (
    "CREATE UNIQUE INDEX outbox_part ON outbox (notification_id, n) WHERE done_at IS NULL",
    "CREATE INDEX outbox_pending ON outbox (seq) WHERE published_at IS NULL AND done_at IS NULL",
    "CREATE INDEX outbox_open ON outbox (lane, holder, again_at, seq) WHERE done_at IS NULL",
)
_SQLITE = {"key": "INTEGER NOT NULL PRIMARY KEY", "blob": "BLOB", "number": "INTEGER", "text": "TEXT", "layout": ""}
_POSTGRES = {
    "key": "bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
    "blob": "bytea",
    "number": "bigint",
    "text": 'text COLLATE "C"',
    "layout": " WITH (fillfactor = 50)",  # an entry is changed three times
}


def upgrade() -> None:
    """Make the table."""
    op.execute(_TABLE.format(**(_POSTGRES if op.get_bind().dialect.name == "postgresql" else _SQLITE)))
    for index in _INDEXES:
        op.execute(index)


def downgrade() -> None:
    """Refuse: going back is not offered."""
    raise NotImplementedError("restore a backup instead")
