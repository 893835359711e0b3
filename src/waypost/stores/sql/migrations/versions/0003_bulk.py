"""Bulk jobs: their lists, pieces and counts, and who opted out of them.

Revision ID: 0003
Revises: 0002
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the tables, and let a notification name its job."""
    if op.get_bind().dialect.name == "postgresql":
        return  # 0004 makes it all
    op.add_column("notification", sa.Column("job", sa.Integer(), nullable=True))
    op.add_column("notification", sa.Column("variables", sa.BLOB(), nullable=True))
    is_open = sa.text("job IS NOT NULL AND finished_at IS NULL")
    op.create_index("notification_of_job", "notification", ["job"], sqlite_where=is_open)
    _job()
    _recipient()
    _piece()
    _count()
    _opt_out()


def downgrade() -> None:
    """Refuse: going back is not offered."""
    raise NotImplementedError("restore a backup instead")


def _job() -> None:
    op.create_table(
        "bulk_job",
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("id", sa.BLOB(), nullable=False),
        sa.Column("app", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Integer(), nullable=False),
        sa.Column("key", sa.BLOB(), nullable=True),
        sa.Column("body_hash", sa.BLOB(), nullable=False),
        sa.Column("job", sa.BLOB(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("walked_to", sa.Text(), nullable=False),
        sa.Column("walked", sa.Integer(), nullable=False),
        sa.Column("pieces", sa.Integer(), nullable=False),
        sa.Column("total", sa.Integer(), nullable=False),
        sa.Column("left_out", sa.Integer(), nullable=False),
        sa.Column("uploaded", sa.Integer(), nullable=False),
        sa.Column("finished_at", sa.Integer(), nullable=True),
        sa.PrimaryKeyConstraint("number"),
    )
    op.create_index("bulk_job_id", "bulk_job", ["id"], unique=True)
    op.create_index("bulk_job_created", "bulk_job", ["created_at"], unique=True)
    op.create_index("bulk_job_key", "bulk_job", ["key"], unique=True, sqlite_where=sa.text("key IS NOT NULL"))
    op.create_index("bulk_job_of_app", "bulk_job", ["app", "id"])
    op.create_index("bulk_job_open", "bulk_job", ["number"], sqlite_where=sa.text("finished_at IS NULL"))


def _recipient() -> None:
    op.create_table(
        "bulk_recipient",
        sa.Column("job", sa.Integer(), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column("variables", sa.BLOB(), nullable=True),
        sa.PrimaryKeyConstraint("job", "user_id"),
        sqlite_with_rowid=False,
    )


def _piece() -> None:
    op.create_table(
        "bulk_piece",
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.Column("job", sa.Integer(), nullable=False),
        sa.Column("n", sa.Integer(), nullable=False),
        sa.Column("shard", sa.Integer(), nullable=False),
        sa.Column("after_user", sa.Text(), nullable=False),
        sa.Column("until_user", sa.Text(), nullable=False),
        sa.Column("expected", sa.Integer(), nullable=False),
        sa.Column("written", sa.Integer(), nullable=False),
        sa.Column("open", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("seq"),
    )
    op.create_index("bulk_piece_n", "bulk_piece", ["job", "n"], unique=True)
    op.create_index("bulk_piece_open", "bulk_piece", ["job", "seq", "shard"], sqlite_where=sa.text("open = 1"))


def _count() -> None:
    op.create_table(
        "bulk_count",
        sa.Column("job", sa.Integer(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("n", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("job", "status"),
        sqlite_with_rowid=False,
    )


def _opt_out() -> None:
    op.create_table(
        "opt_out",
        sa.Column("app", sa.Text(), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column("at", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("app", "user_id"),
        sqlite_with_rowid=False,
    )
