"""Settings of where the archive's files lie."""

from __future__ import annotations

from msgspec import Struct


class S3Settings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of an S3-compatible store."""

    endpoint: str | None = None
    """The URL of the store, where it is not Amazon's; `http://` sends everything in the clear."""
    region: str = "us-east-1"
    """The region of the bucket."""
    access_key_id: str | None = None
    """The id of the key; with `secret_access_key_file`. Unset: what the machine's role or the environment gives."""
    secret_access_key_file: str | None = None
    """The file with its secret."""
