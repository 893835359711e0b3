"""Who ordered what.

Revision ID: 0009
Revises: 0008
"""

from __future__ import annotations

from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

_TABLE = """\
CREATE TABLE audit (
    seq {key}, at {number} NOT NULL, app TEXT NOT NULL, ordered_by TEXT NOT NULL, origin TEXT NOT NULL,
    act TEXT NOT NULL, subject TEXT NOT NULL
)
"""
_INDEX = "CREATE INDEX audit_of_app ON audit (app, seq)"
_SQLITE = {"key": "INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL", "number": "INTEGER"}
_POSTGRES = {"key": "bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY", "number": "bigint"}


def upgrade() -> None:
    """Make the table."""
    op.execute(_TABLE.format(**(_POSTGRES if op.get_bind().dialect.name == "postgresql" else _SQLITE)))
    op.execute(_INDEX)


def downgrade() -> None:
    """Not offered."""
    raise NotImplementedError("restore a backup instead")
