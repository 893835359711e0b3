"""Alembic's entry: runs the revisions on the connection it is given."""

from __future__ import annotations

from alembic import context

from waypost.stores.sql.migrations import NOTED_IN
from waypost.stores.sql.schema import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    version_table=NOTED_IN,
    render_as_batch=True,
    transactional_ddl=True,
)
with context.begin_transaction():
    context.run_migrations()
