"""Settings of the archive."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from waypost.config import Config
from waypost.stores.archive.settings import S3Settings


class ArchiveSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of where old notifications go."""

    to: Annotated[str, Meta(min_length=1)] | None = None
    """A folder, or `s3://bucket/prefix`. Unset: there is no archive, and retention deletes."""
    content: Literal["keep", "leave_out"] = "keep"
    """Whether titles, bodies and data are archived, or only what became of them."""
    s3: S3Settings = S3Settings()
    """How the S3-compatible store is reached."""


def archives(config: Config) -> bool:
    """Tell whether there is an archive."""
    settings = config.features.get("archive")
    return isinstance(settings, ArchiveSettings) and settings.to is not None
