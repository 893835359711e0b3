"""What an app says of its Firebase project (``apps.<app>.fcm``)."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct


class FcmSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One service account of one project."""

    service_account_file: str
    """The JSON key file from the Firebase console; it names the project and the token endpoint, too."""
    endpoint: str | None = None
    """``https://host:port`` instead of Google's own."""
    ca_file: str | None = None
    """Trust these authorities alone, instead of the system's; also for the token endpoint."""
    connections: Annotated[int, Meta(ge=1, le=50)] = 10
    """At most; each carries up to 100 requests at once."""
