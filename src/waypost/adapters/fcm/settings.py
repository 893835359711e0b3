"""What an operator says of one FCM credential."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct


class FcmSettings(Struct, frozen=True, kw_only=True):
    """One service account of one Firebase project."""

    service_account_file: Path
    """The service account's JSON key file from Google; it names the project and the token endpoint."""
    endpoint: str | None = None
    """Another gateway than Google's, such as the lab's."""
    ca_file: Path | None = None
    """Certificates to trust in place of the system's, PEM; also for the token endpoint."""
