"""Settings of the archive."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

from msgspec import Meta, Struct

from waypost.config import Config
from waypost.domain.errors import ConfigurationError
from waypost.stores.archive.settings import S3Settings


class ArchiveSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of where old notifications go."""

    to: Annotated[str, Meta(min_length=1)] | None = None
    """A folder, or `s3://bucket/prefix`. Unset: there is no archive, and retention deletes."""
    content: Literal["keep", "leave_out"] = "keep"
    """Whether titles, bodies and data are archived, or only what became of them."""
    s3: S3Settings = S3Settings()
    """How the S3-compatible store is reached."""


def check_archive(config: Config) -> None:
    """Refuse, with ConfigurationError, where nothing could be stored."""
    settings = config.features.get("archive")
    if not isinstance(settings, ArchiveSettings) or settings.to is None:
        return
    at, s3 = urlsplit(settings.to), settings.s3
    if at.scheme not in {"", "s3"} or (at.scheme and not at.netloc):
        raise ConfigurationError("archive.to", "is a folder, or s3://bucket/prefix")
    if (s3.access_key_id is None) is not (s3.secret_access_key_file is None):
        raise ConfigurationError("archive.s3", "access_key_id and secret_access_key_file belong together")
    if s3.secret_access_key_file is not None and not Path(s3.secret_access_key_file).is_file():
        raise ConfigurationError("archive.s3.secret_access_key_file", "cannot be read")


def archives(config: Config) -> bool:
    """Tell whether there is an archive."""
    settings = config.features.get("archive")
    return isinstance(settings, ArchiveSettings) and settings.to is not None
