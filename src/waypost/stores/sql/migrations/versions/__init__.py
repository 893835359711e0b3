"""The revisions of the schema, for Alembic."""
