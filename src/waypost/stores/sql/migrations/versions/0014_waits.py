"""What a target waits for before it is sent.

Revision ID: 0014
Revises: 0013
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column; the version before writes and reads rows without it."""
    op.add_column("receipt", sa.Column("waits", sa.LargeBinary(), nullable=True))


def downgrade() -> None:
    """Refuse: going back is not offered."""
    raise NotImplementedError("restore a backup instead")
