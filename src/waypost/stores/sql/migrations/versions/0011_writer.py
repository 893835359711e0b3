"""Which batch each writer committed last, by which one that is in doubt is found on any server.

Revision ID: 0011
Revises: 0010
"""

from __future__ import annotations

from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

# Changed by each transaction of its writer: the new version of a row fits on the same page, beside those of the others.
_TABLE = (
    "CREATE TABLE IF NOT EXISTS writer (nonce uuid PRIMARY KEY, batch bigint NOT NULL, at timestamptz NOT NULL)"
    " WITH (fillfactor = 20)"
)


def upgrade() -> None:
    """Make the table, where the answer to a commit can be lost on the way."""
    if op.get_bind().dialect.name == "postgresql":
        op.execute(_TABLE)


def downgrade() -> None:
    """Refuse: going back is not offered."""
    raise NotImplementedError("restore a backup instead")
