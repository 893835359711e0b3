"""What a key may do, and until when: in a table apart, so that the version before goes on making keys.

Revision ID: 0007
Revises: 0006
"""

from __future__ import annotations

from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

_TABLE = "CREATE TABLE key_terms (prefix TEXT NOT NULL PRIMARY KEY, scopes TEXT, expires_at {number}){layout}"
_SQLITE = {"number": "INTEGER", "layout": " WITHOUT ROWID"}
_POSTGRES = {"number": "bigint", "layout": ""}


def upgrade() -> None:
    """Make the table."""
    op.execute(_TABLE.format(**(_POSTGRES if op.get_bind().dialect.name == "postgresql" else _SQLITE)))


def downgrade() -> None:
    """Not offered."""
    raise NotImplementedError("restore a backup instead")
