"""What readers did with their notifications.

Revision ID: 0006
Revises: 0005
"""

from __future__ import annotations

from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

_TABLE = """\
CREATE TABLE mark (notification_id {blob} NOT NULL PRIMARY KEY, read_at {number}, hidden_at {number}){layout}
"""
_SQLITE = {"blob": "BLOB", "number": "INTEGER", "layout": " WITHOUT ROWID"}
_POSTGRES = {"blob": "bytea", "number": "bigint", "layout": ""}


def upgrade() -> None:
    """Make the table."""
    op.execute(_TABLE.format(**(_POSTGRES if op.get_bind().dialect.name == "postgresql" else _SQLITE)))


def downgrade() -> None:
    """Refuse: going back is not offered."""
    raise NotImplementedError("restore a backup instead")
