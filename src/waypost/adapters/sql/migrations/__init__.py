"""The revisions of the schema, for Alembic; each file begins with its number."""

from pathlib import Path


def latest() -> str:
    """The revision of today's schema."""
    versions = Path(__file__).with_name("versions")
    return max(path.name.partition("_")[0] for path in versions.glob("[0-9]*.py"))
