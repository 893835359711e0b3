"""The revisions of the schema, for Alembic; each file begins with its number."""

from pathlib import Path


def latest() -> str:
    """Return the revision of today's schema."""
    versions = Path(__file__).with_name("versions")
    return max(path.name.partition("_")[0] for path in versions.glob("[0-9]*.py"))


def is_known(found: str) -> bool:
    """Tell whether this version works with revision *found* as it is: its own, or the one after it.

    The latter comes while it runs, and a worker that is started again amid an upgrade goes on.
    """
    head = latest()
    return found in (head, f"{int(head) + 1:04}")
