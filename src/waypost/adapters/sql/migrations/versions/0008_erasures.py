"""Orders to forget a user.

Revision ID: 0008
Revises: 0007
"""

from __future__ import annotations

from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

_TABLE = """\
CREATE TABLE erasure (
    id {blob} NOT NULL PRIMARY KEY, app TEXT NOT NULL, user_id TEXT, tombstone TEXT NOT NULL,
    asked_at {number} NOT NULL, finished_at {number}
){layout}
"""
_INDEX = "CREATE UNIQUE INDEX erasure_standing ON erasure (app, user_id) WHERE finished_at IS NULL"
_SQLITE = {"blob": "BLOB", "number": "INTEGER", "layout": " WITHOUT ROWID"}
_POSTGRES = {"blob": "bytea", "number": "bigint", "layout": ""}


def upgrade() -> None:
    """Make the table."""
    op.execute(_TABLE.format(**(_POSTGRES if op.get_bind().dialect.name == "postgresql" else _SQLITE)))
    op.execute(_INDEX)


def downgrade() -> None:
    """Not offered."""
    raise NotImplementedError("restore a backup instead")
