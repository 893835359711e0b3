"""What is due by app, so that apps take turns where more is due than may be released.

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

_WHERE = {"notification": "due_at > 0", "receipt": "due_at IS NOT NULL"}
_KEY = {"notification": "seq", "receipt": "notification_id, n"}
"""What an index of SQLite ends with by itself."""
_PARTS = """\
SELECT part.relname FROM pg_inherits JOIN pg_class AS part ON part.oid = inhrelid
WHERE inhparent = CAST(:whole AS regclass) ORDER BY part.relname
"""
_HALF_MADE = """\
SELECT made.relname FROM pg_index JOIN pg_class AS made ON made.oid = indexrelid
WHERE made.relname LIKE '%_due_of_app' AND made.relkind = 'i' AND NOT indisvalid
"""
_PATIENCE = "SET lock_timeout = '20s'"
"""For transactions that were open before: nobody else waits behind an index that is made concurrently."""
_AS_BEFORE = "RESET lock_timeout"


def upgrade() -> None:
    """Make the indexes: on PostgreSQL on each partition, which stops nobody, then on the whole."""
    if op.get_bind().dialect.name != "postgresql":
        for table, where in _WHERE.items():
            columns = ["lane", "app", "due_at", "shard"]
            op.create_index(f"{table}_due_of_app", table, columns, sqlite_where=sa.text(where))
        return
    with op.get_context().autocommit_block():
        connection = op.get_bind()
        connection.execute(sa.text(_PATIENCE))
        for name in connection.execute(sa.text(_HALF_MADE)).scalars().all():
            op.execute(f'DROP INDEX CONCURRENTLY "{name}"')
        for table, where in _WHERE.items():
            keys = f"(lane, app, due_at, shard, {_KEY[table]}) WHERE {where}"
            for name in connection.execute(sa.text(_PARTS), {"whole": table}).scalars().all():
                op.execute(f'CREATE INDEX CONCURRENTLY IF NOT EXISTS "{name}_due_of_app" ON "{name}" {keys}')
        connection.execute(sa.text(_AS_BEFORE))
        for table, where in _WHERE.items():
            keys = f"(lane, app, due_at, shard, {_KEY[table]}) WHERE {where}"
            op.execute(f"CREATE INDEX IF NOT EXISTS {table}_due_of_app ON {table} {keys}")


def downgrade() -> None:
    """Refuse: going back is not offered."""
    raise NotImplementedError("restore a backup instead")
