"""PostgreSQL: who has leased what, and what is due; the outbox says only what is to be published.

Revision ID: 0013
Revises: 0012

What was leased by an entry of the outbox is leased again: fresh as its notification says, or due; what was handed
over and not sent is known by its entry alone, so that it becomes a claim.
"""

from __future__ import annotations

from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None

_CLAIMS = (
    """\
    CREATE TABLE claim (
        notification_id bytea NOT NULL, n bigint NOT NULL, seq bigint GENERATED ALWAYS AS IDENTITY,
        app text COLLATE "C" NOT NULL, lane text COLLATE "C" NOT NULL, free_at bigint NOT NULL, holder bigint,
        PRIMARY KEY (notification_id, n)
    )
    """,
    "CREATE INDEX claim_free ON claim (lane, free_at, seq) WHERE holder IS NULL",
    "CREATE INDEX claim_held ON claim (holder) WHERE holder IS NOT NULL",
    "INSERT INTO claim (notification_id, n, app, lane, free_at)"
    " SELECT notification_id, n, app, lane, 1 FROM outbox WHERE done_at IS NULL AND n >= 0",
)
_OUTBOX = """\
CREATE TABLE outbox (
    seq {key}, notification_id {blob} NOT NULL, n {number} NOT NULL, app {text} NOT NULL, lane {text} NOT NULL,
    added_at {number} NOT NULL, claimed_by {number}, claimed_at {number}, published_at {number}
){layout}
"""
_SQLITE = {"key": "INTEGER NOT NULL PRIMARY KEY", "blob": "BLOB", "number": "INTEGER", "text": "TEXT", "layout": ""}
_POSTGRES = {
    "key": "bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
    "blob": "bytea",
    "number": "bigint",
    "text": 'text COLLATE "C"',
    "layout": " WITH (fillfactor = 50)",  # an entry is changed twice
}


def upgrade() -> None:
    """Make the tables; on SQLite what is leased is a memory of the process that has the shard."""
    is_postgres = op.get_bind().dialect.name == "postgresql"
    for statement in _CLAIMS if is_postgres else ():
        op.execute(statement)
    op.execute("DROP TABLE outbox")
    op.execute(_OUTBOX.format(**(_POSTGRES if is_postgres else _SQLITE)))
    op.execute("CREATE INDEX outbox_pending ON outbox (seq) WHERE published_at IS NULL")


def downgrade() -> None:
    """Refuse: going back is not offered."""
    raise NotImplementedError("restore a backup instead")
