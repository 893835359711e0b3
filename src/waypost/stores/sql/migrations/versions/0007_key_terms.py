"""What keys may do and until when, orders to forget a user, and who ordered what.

What a key may do is in a table apart, so that the version before goes on making keys.

Revision ID: 0007
Revises: 0006
"""

from __future__ import annotations

from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

_STATEMENTS = (
    """\
    CREATE TABLE key_terms (
        prefix TEXT NOT NULL PRIMARY KEY, scopes TEXT, expires_at {number}, made_for_ms {number}
    ){layout}
    """,
    """\
    CREATE TABLE erasure (
        id {blob} NOT NULL PRIMARY KEY, app TEXT NOT NULL, user_id TEXT, tombstone TEXT NOT NULL,
        asked_at {number} NOT NULL, finished_at {number}
    ){layout}
    """,
    "CREATE UNIQUE INDEX erasure_standing ON erasure (app, user_id) WHERE finished_at IS NULL",
    """\
    CREATE TABLE audit (
        seq {counted}, at {number} NOT NULL, app TEXT NOT NULL, ordered_by TEXT NOT NULL, origin TEXT NOT NULL,
        act TEXT NOT NULL, subject TEXT NOT NULL
    )
    """,
    "CREATE INDEX audit_of_app ON audit (app, seq)",
)
_SQLITE = {
    "blob": "BLOB",
    "number": "INTEGER",
    "counted": "INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL",
    "layout": " WITHOUT ROWID",
}
_POSTGRES = {
    "blob": "bytea",
    "number": "bigint",
    "counted": "bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
    "layout": "",
}


def upgrade() -> None:
    """Make the tables."""
    words = _POSTGRES if op.get_bind().dialect.name == "postgresql" else _SQLITE
    for statement in _STATEMENTS:
        op.execute(statement.format(**words))


def downgrade() -> None:
    """Refuse: going back is not offered."""
    raise NotImplementedError("restore a backup instead")
