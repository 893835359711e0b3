"""Settings of an app's e-mail (``apps.<app>.email``)."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from msgspec import Meta, Struct

from waypost.domain.channel import Channel

CHANNEL: Final = Channel("email")
Security = Literal["starttls", "tls", "none"]
PORTS: Final[dict[Security, int]] = {"starttls": 587, "tls": 465, "none": 25}
Provider = Literal["smtp", "ses", "postmark"]


class EmailSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of the SMTP server, and of whom messages come from."""

    host: str
    """The name of the SMTP server."""
    port: Annotated[int, Meta(ge=1, le=65535)] | None = None
    """Unset: 587 with `starttls`, 465 with `tls`, 25 with `none`."""
    security: Security = "starttls"
    """The encryption: after a greeting (`starttls`), from the first byte (`tls`), or none, for a server on this
    machine."""
    plaintext: bool = False
    """Allows `security: none` to other machines: whoever is between reads messages and password."""
    sender: str
    """`news@example.com`, or `Example Shop <news@example.com>`."""
    reply_to: str | None = None
    """Where answers go. Unset: to the sender."""
    bounces_to: str | None = None
    """The envelope's sender, which hears of undeliverable messages. Unset: the sender."""
    username: str | None = None
    """With `password_file` or `token_file`."""
    password_file: str | None = None
    """A file with the password."""
    token_file: str | None = None
    """A file with an OAuth 2.0 access token (XOAUTH2), which somebody else renews."""
    ca_file: str | None = None
    """The authorities to trust instead of the system's."""
    connections: Annotated[int, Meta(ge=1, le=50)] = 4
    """The most connections; each carries one message at a time."""
    idle_s: Annotated[int, Meta(ge=1, le=600)] = 30
    """Seconds for which an idle connection is kept."""
    timeout_s: Annotated[int, Meta(ge=2, le=300)] = 60
    """Seconds for the answer to a message; half of them until it is begun."""
    unsubscribe_url: str | None = None
    """One-click unsubscribing (RFC 8058): `https://…` with `{token}`; needs `unsubscribe_key_file`."""
    unsubscribe_key_file: str | None = None
    """A secret of at least 32 bytes that signs `{token}`."""
    unsubscribe_mailto: str | None = None
    """A mailbox that takes unsubscribe requests."""
    dkim_key_file: str | None = None
    """An RSA key (PEM) that signs messages; with `dkim_selector`."""
    dkim_selector: str | None = None
    """Names the key: `<selector>._domainkey.<domain>`."""
    dkim_domain: str | None = None
    """The domain that signs. Unset: the sender's."""
    callback_password_file: str | None = None
    """A password of at least 16 bytes in the provider's callback URL; without it callbacks are refused."""
    provider: Provider = "smtp"
    """Whose server it is, for callbacks and changed headers; any other is `smtp`."""
