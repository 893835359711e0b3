"""The key of a Web Push sender, as the command line makes and shows it."""

from __future__ import annotations

from pathlib import Path

from waypost.channels.push.signing import read_p256
from waypost.channels.push.vapid import public_half, write_new_key

__all__ = ["public_key_in", "write_new_key"]


def public_key_in(file: Path) -> str:
    """Return the public half of the key in *file*; ConfigurationError where that is none."""
    return public_half(read_p256(str(file), str(file)))
