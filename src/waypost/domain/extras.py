"""Optional parts of the package, and how they are installed: nothing of Waypost is on a package index."""

from __future__ import annotations


def how_to_install(*extras: str) -> str:
    """Write the command that installs these parts."""
    return f"pip install '.[{','.join(extras)}]' in a clone of Waypost; docs/deploy.md#optional-parts"
