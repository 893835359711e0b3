"""Settings of an app's e-mail (``apps.<app>.email``)."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from msgspec import Meta, Struct

from waypost.domain.channel import Channel

CHANNEL: Final = Channel("email")
Security = Literal["starttls", "tls", "none"]
Provider = Literal["smtp", "ses", "postmark"]


class EmailSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of the SMTP server, and of whom messages come from."""

    host: str
    """The SMTP server that takes messages for everybody: its name."""
    port: Annotated[int, Meta(ge=1, le=65535)] | None = None
    """Its port; left out, 587 with `starttls`, 465 with `tls`, 25 with `none`."""
    security: Security = "starttls"
    """How the connection is encrypted: after a greeting (`starttls`), from the first byte (`tls`), or not at all
    (`none`), which is for a server on this machine."""
    plaintext: bool = False
    """Whether `security: none` is also for servers on other machines: whoever is between reads the messages, and the
    password."""
    sender: str
    """Whom messages come from: `news@example.com`, or `Example Shop <news@example.com>`."""
    reply_to: str | None = None
    """Where answers go, where not to the sender."""
    bounces_to: str | None = None
    """The mailbox that hears of messages that cannot be delivered (the envelope's sender); left out, the sender's."""
    username: str | None = None
    """Who we are to the server; with `password_file` or `token_file`."""
    password_file: str | None = None
    """A file with the password."""
    token_file: str | None = None
    """A file with an OAuth 2.0 access token (XOAUTH2), kept fresh by whoever writes it."""
    ca_file: str | None = None
    """The certificate authorities to trust, instead of the system's."""
    connections: Annotated[int, Meta(ge=1, le=50)] = 4
    """The most connections at once; each carries one message at a time."""
    idle_s: Annotated[int, Meta(ge=1, le=600)] = 30
    """Seconds for which a connection without work is kept open."""
    timeout_s: Annotated[int, Meta(ge=2, le=300)] = 60
    """Seconds in which the server must have answered for a message; half of them until it is begun."""
    unsubscribe_url: str | None = None
    """The address of one-click unsubscribing (RFC 8058), `https://…`, with `{token}` where the recipient is named;
    needs `unsubscribe_key_file`."""
    unsubscribe_key_file: str | None = None
    """A secret of at least 32 bytes that signs `{token}`, so that nobody can unsubscribe others."""
    unsubscribe_mailto: str | None = None
    """A mailbox that takes unsubscribe requests, beside or instead of the address."""
    dkim_key_file: str | None = None
    """An RSA key as PEM that signs each message (DKIM, RFC 6376); with `dkim_selector`."""
    dkim_selector: str | None = None
    """The name under which the key is published: `<selector>._domainkey.<domain>`."""
    dkim_domain: str | None = None
    """The domain that signs; left out, the sender's."""
    callback_password_file: str | None = None
    """A password of at least 16 bytes in the address that the provider posts to; without it nothing it posts is taken.
    """
    provider: Provider = "smtp"
    """Whose server it is, since callbacks and changed headers differ: `ses`, `postmark`, or any (`smtp`)."""
