"""An app's history by an index of its own, so that nobody pays for the notifications of other apps.

Revision ID: 0008
Revises: 0007
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

_PARTS = """\
SELECT part.relname FROM pg_inherits JOIN pg_class AS part ON part.oid = inhrelid
WHERE inhparent = 'notification'::regclass ORDER BY part.relname
"""
_HALF_MADE = """\
SELECT made.relname FROM pg_index JOIN pg_class AS made ON made.oid = indexrelid
WHERE made.relname LIKE 'notification%_of_app' AND NOT indisvalid
"""
_PATIENCE = "SET lock_timeout = '20s'"
"""For transactions that were open before: nobody else waits behind an index that is made concurrently."""
_AS_BEFORE = "RESET lock_timeout"


def upgrade() -> None:
    """Make the index: on PostgreSQL on each partition, which stops nobody, then on the whole, which takes those in."""
    if op.get_bind().dialect.name != "postgresql":
        op.create_index("notification_of_app", "notification", ["app", "id"])
        return
    with op.get_context().autocommit_block():
        connection = op.get_bind()
        connection.execute(sa.text(_PATIENCE))
        for name in connection.execute(sa.text(_HALF_MADE)).scalars().all():
            op.execute(f'DROP INDEX CONCURRENTLY "{name}"')
        for name in connection.execute(sa.text(_PARTS)).scalars().all():
            op.execute(f'CREATE INDEX CONCURRENTLY IF NOT EXISTS "{name}_of_app" ON "{name}" (app, id)')
        connection.execute(sa.text(_AS_BEFORE))
        op.execute("CREATE INDEX IF NOT EXISTS notification_of_app ON notification (app, id)")


def downgrade() -> None:
    """Refuse: going back is not offered."""
    raise NotImplementedError("restore a backup instead")
