"""Passwords and tokens, each a line in a file."""

from __future__ import annotations

from pathlib import Path

from waypost.domain.errors import ConfigurationError


def read_line(setting: str, file: str) -> str:
    """Read the line in *file*; ConfigurationError names *setting*."""
    try:
        secret = Path(file).read_text(encoding="utf-8").strip()
    except OSError as error:
        raise ConfigurationError(setting, f"cannot read it: {error.strerror or 'unreadable'}") from None
    except UnicodeDecodeError:
        raise ConfigurationError(setting, "is not UTF-8 text") from None
    if not secret or not secret.isprintable():
        raise ConfigurationError(setting, "must hold one line")
    return secret
