"""Why a bulk job is `failed`.

Revision ID: 0009
Revises: 0008
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column; the version before writes and reads rows without it."""
    op.add_column("bulk_job", sa.Column("failure", sa.Text(), nullable=True))


def downgrade() -> None:
    """Not offered."""
    raise NotImplementedError("restore a backup instead")
