"""The revisions of the schema, for Alembic; each file begins with its number."""

from pathlib import Path
from typing import Final

VERSIONS = Path(__file__).with_name("versions")
NOTED_IN: Final = "schema_revision"
"""The table in which a database says where it stands."""
MOVED: Final = "moved"
"""The note of a database whose content was moved into another one."""
BEFORE_RELEASE: Final = "alembic_version"
"""The same of databases made before 0.1.0, whose revisions were numbered otherwise."""


def latest() -> str:
    """Return the revision of today's schema."""
    return max(path.name.partition("_")[0] for path in VERSIONS.glob("[0-9]*.py"))


def is_known(found: str) -> bool:
    """Tell whether this version works with revision *found* as it is: its own, or the one after it.

    The latter comes while it runs, and a worker that is started again amid an upgrade goes on.
    """
    head = latest()
    return found in (head, f"{int(head) + 1:04}")
