"""Settings of an app's Firebase project (``apps.<app>.fcm``)."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from msgspec import Meta, Struct

from waypost.channels.push.fitting import Fit
from waypost.domain.channel import Channel

CHANNEL: Final = Channel("fcm")
GOOGLE: Final = "https://fcm.googleapis.com"
TOKENS: Final = "https://oauth2.googleapis.com"
"""Where a service account gets its access tokens, where its file names no other place."""

Form = Literal["waypost", "notifications-service"]


class TokenRules(Struct, frozen=True, kw_only=True):
    """The rules for answers that do not always speak of the token: when they make it forgotten."""

    invalid_argument: Literal["smart", "remove", "refuse"] = "smart"
    sender_id_mismatch: Literal["refuse", "remove"] = "refuse"


class FcmSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of one service account of one project."""

    service_account_file: str
    """The JSON key file from the Firebase console, or ``metadata``: the account of a Google machine."""
    project_id: str | None = None
    """The project, if not the account's own."""
    endpoint: str | None = None
    """``https://host:port`` instead of Google's own."""
    ca_file: str | None = None
    """As for APNs, and for the token endpoint."""
    proxy: str | None = None
    """As for APNs, and for the token endpoint."""
    connections: Annotated[int, Meta(ge=1, le=50)] = 25
    """The most connections; each carries 100 requests at once."""
    invalid_argument: Literal["smart", "remove", "refuse"] = "smart"
    """On ``INVALID_ARGUMENT``, ``smart`` forgets the token where it is at fault, else refuses the message."""
    sender_id_mismatch: Literal["refuse", "remove"] = "refuse"
    """For a token of another project the message fails; `remove` also forgets the token."""

    fit: Fit = "refuse"
    """Over 4,096 bytes: refused, or body, then title, shortened (``trim``)."""
    form: Form = "waypost"
    """The form of visible messages: Waypost's, or that of the notifications service."""
    validate_only: bool = False
    """Google validates every message and delivers none."""

    def token_rules(self) -> TokenRules:
        """Return the two settings that decide when a token is forgotten."""
        return TokenRules(invalid_argument=self.invalid_argument, sender_id_mismatch=self.sender_id_mismatch)
