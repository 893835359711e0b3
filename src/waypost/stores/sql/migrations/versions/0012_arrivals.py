"""PostgreSQL: accepts stand in nobody's way: numbers in blocks, and a row for each commit that made work leasable.

Revision ID: 0012
Revises: 0011

What a worker of the version before accepts moves ``sequence`` on, by which the tails of this version hear of it.
"""

from __future__ import annotations

from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

_STATEMENTS = (
    "CREATE SEQUENCE IF NOT EXISTS number_block",
    """\
    CREATE TABLE IF NOT EXISTS arrival (
        tx bigint PRIMARY KEY DEFAULT pg_current_xact_id()::text::bigint,
        first_seq bigint NOT NULL, last_seq bigint NOT NULL, fresh text COLLATE "C" NOT NULL
    )
    """,
)


def upgrade() -> None:
    """Make both; on SQLite there is one writer at a time."""
    if op.get_bind().dialect.name == "postgresql":
        for statement in _STATEMENTS:
            op.execute(statement)


def downgrade() -> None:
    """Refuse: going back is not offered."""
    raise NotImplementedError("restore a backup instead")
