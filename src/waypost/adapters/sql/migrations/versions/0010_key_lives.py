"""What life a key was given, once its replacement has shortened it.

Revision ID: 0010
Revises: 0009
"""

from __future__ import annotations

from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column."""
    number = "bigint" if op.get_bind().dialect.name == "postgresql" else "INTEGER"
    op.execute(f"ALTER TABLE key_terms ADD COLUMN made_for_ms {number}")


def downgrade() -> None:
    """Not offered."""
    raise NotImplementedError("restore a backup instead")
