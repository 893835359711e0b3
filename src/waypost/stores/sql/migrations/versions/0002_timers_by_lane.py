"""The timers begin with the lane, so that what is due in one lane never hides what is due in another.

Revision ID: 0002
Revises: 0001
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

_FILL = """\
UPDATE receipt SET lane = (SELECT lane FROM notification WHERE id = receipt.notification_id) WHERE due_at IS NOT NULL
"""


def upgrade() -> None:
    """Name the lane of what is open, and order the timers by it."""
    if op.get_bind().dialect.name == "postgresql":
        return  # 0004 makes it all
    op.add_column("receipt", sa.Column("lane", sa.Text(), nullable=True))
    op.execute(_FILL)
    op.drop_index("notification_due", "notification")
    op.drop_index("receipt_due", "receipt")
    by_lane = ["lane", "due_at", "shard"]
    op.create_index("notification_due", "notification", by_lane, sqlite_where=sa.text("due_at > 0"))
    op.create_index("receipt_due", "receipt", by_lane, sqlite_where=sa.text("due_at IS NOT NULL"))


def downgrade() -> None:
    """Refuse: going back is not offered."""
    raise NotImplementedError("restore a backup instead")
