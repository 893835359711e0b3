"""Settings of an app's SMS (``apps.<app>.sms``)."""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import Meta, Struct

from waypost.channels.push.fitting import Fit
from waypost.domain.channel import Channel

CHANNEL: Final = Channel("sms")
TWILIO: Final = "https://api.twilio.com"


class SmsSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of the Twilio account, and of who a text message comes from."""

    account_sid: Annotated[str, Meta(pattern=r"^AC[0-9a-fA-F]{32}(?!\n)$")]
    """`AC` and 32 hex digits."""
    auth_token_file: str
    """A file with the auth token, which also signs Twilio's reports."""
    api_key_sid: Annotated[str, Meta(pattern=r"^SK[0-9a-fA-F]{32}(?!\n)$")] | None = None
    """An API key to sign in with in place of the token; with `api_key_secret_file`."""
    api_key_secret_file: str | None = None
    """A file with its secret."""
    messaging_service_sid: Annotated[str, Meta(pattern=r"^MG[0-9a-fA-F]{32}(?!\n)$")] | None = None
    """The messaging service that chooses the number; or else `from_number`."""
    from_number: Annotated[str, Meta(pattern=r"^(\+[1-9][0-9]{6,14}|[0-9]{3,8}|[A-Za-z0-9 ]{1,11})(?!\n)$")] | None = (
        None
    )
    """The number, short code or name that messages come from."""
    fit: Fit = "refuse"
    """Over 1,600 characters: refused, or body and title shortened (`trim`)."""
    endpoint: str | None = None
    """`https://host[:port]` instead of Twilio's own."""
    ca_file: str | None = None
    """The authorities to trust instead of the system's."""
    connections: Annotated[int, Meta(ge=1, le=100)] = 10
    """The most connections; each carries one request at a time."""
