"""A migration after the newest: what tests upgrade to, and how one is written that stops nobody."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final

import pytest

from waypost.stores.sql import migrations

_TEXT: Final = '''\
"""A column and an index of tables that are written all the time.

Revision ID: {revision}
Revises: {before}
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "{revision}"
down_revision = "{before}"
branch_labels = None
depends_on = None

_PARTS = """\\
SELECT part.relname FROM pg_inherits JOIN pg_class AS part ON part.oid = inhrelid
WHERE inhparent = 'notification'::regclass ORDER BY part.relname
"""
_HALF_MADE = """\\
SELECT made.relname FROM pg_index JOIN pg_class AS made ON made.oid = indexrelid
WHERE made.relname LIKE 'notification%_later' AND made.relkind = 'i' AND NOT indisvalid
"""
_PATIENCE = "SET lock_timeout = '20s'"
"""For transactions that were open before: nobody else waits behind an index that is made concurrently."""
_AS_BEFORE = "RESET lock_timeout"


def upgrade() -> None:
    """First what may be cut off and begun again, then what is whole or not there, with the revision's number."""
    if op.get_bind().dialect.name == "postgresql":
        _index_without_lock()
    else:
        op.create_index("notification_later", "notification", ["app", "seq"])
    op.add_column("receipt", sa.Column("later", sa.Text(), nullable=True))


def _index_without_lock() -> None:
    """On each partition, which stops nobody, then on the whole, which takes those in."""
    with op.get_context().autocommit_block():
        connection = op.get_bind()
        connection.execute(sa.text(_PATIENCE))
        for name in connection.execute(sa.text(_HALF_MADE)).scalars().all():
            op.execute(f'DROP INDEX CONCURRENTLY "{{name}}"')
        for name in connection.execute(sa.text(_PARTS)).scalars().all():
            op.execute(f'CREATE INDEX CONCURRENTLY IF NOT EXISTS "{{name}}_later" ON "{{name}}" (app, seq)')
        connection.execute(sa.text(_AS_BEFORE))
        op.execute("CREATE INDEX IF NOT EXISTS notification_later ON notification (app, seq)")


def downgrade() -> None:
    """Not offered."""
    raise NotImplementedError("restore a backup instead")
'''


def add_to(versions: Path, name: str = "later") -> str:
    """Write it into a copy of the folder of migrations, with what it adds under *name*; its revision."""
    before = max(path.name for path in versions.glob("[0-9]*.py")).partition("_")[0]
    revision = f"{int(before) + 1:04}"
    text = _TEXT.format(revision=revision, before=before).replace("later", name)
    (versions / f"{revision}_{name}.py").write_text(text)
    return revision


def bring(folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Let this process be of the version that has it; its revision. Migrations are copied into *folder*."""
    versions = folder / "versions"
    shutil.copytree(migrations.VERSIONS, versions)
    revision = add_to(versions)
    monkeypatch.setattr(migrations, "VERSIONS", versions)
    return revision
