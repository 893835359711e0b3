"""The account with the lab's mail server that e-mail is tested with."""

from __future__ import annotations

from urllib.parse import urlsplit

from waypost.channels.email.settings import EmailSettings
from waypost.lab.lab import Lab


def account(lab: Lab) -> EmailSettings:
    """Return an account with the mail server of *lab*, by STARTTLS and password."""
    at = urlsplit(lab.urls.further["email"])
    directory = lab.settings.directory
    return EmailSettings(
        host=at.hostname or "",
        port=at.port,
        sender="Example Shop <news@example.com>",
        username="lab",
        password_file=str(directory / "smtp-password"),
        ca_file=str(directory / "ca.pem"),
    )
