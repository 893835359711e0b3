"""Lists of users and recipients in files: CSV, or a JSON object a line."""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO, Final

import click

_MEDIA_OF: Final = {".csv": "text/csv", ".ndjson": "application/x-ndjson", ".jsonl": "application/x-ndjson"}


def media_of(file: Path, option: str) -> str:
    """Return the media type that the name of *file* says; BadParameter of *option* where it says none."""
    found = _MEDIA_OF.get(file.suffix.lower())
    if found is None:
        raise click.BadParameter(f"ends with none of {', '.join(sorted(_MEDIA_OF))}", param_hint=option)
    return found


def open_list(file: Path, option: str) -> BinaryIO:
    """Open *file*; BadParameter of *option* where it cannot be read."""
    try:
        return file.open("rb")
    except OSError as unreadable:
        raise click.BadParameter(f"cannot be read: {unreadable.strerror}", param_hint=option) from None
