"""What a connection needs: where the server is, how it is encrypted, and who we are to it."""

from __future__ import annotations

import socket
import ssl
from email.utils import parseaddr

from msgspec import Struct

from waypost.channels.email.dkim import DkimSigner, read_signer
from waypost.channels.email.mailboxes import canonical, why_no_mailbox
from waypost.channels.email.message import Author
from waypost.channels.email.settings import PORTS, EmailSettings, Security
from waypost.channels.email.unsubscribing import read_unsubscribing
from waypost.channels.push.secrets import read_line
from waypost.domain.errors import ConfigurationError
from waypost.runtime.listening import is_loopback

_CALLBACK_PASSWORD_BYTES = 16


class Access(Struct, frozen=True):
    """The way to the server; *tls* is None where nothing is encrypted."""

    host: str
    port: int
    security: Security
    tls: ssl.SSLContext | None
    our_name: str
    """Our name in EHLO."""
    username: str | None
    password: str | None
    token: str | None
    """An OAuth 2.0 access token, instead of a password."""


def read_access(section: str, settings: EmailSettings) -> Access:
    """Read the files that the settings name; ConfigurationError names the setting that cannot be used."""
    if settings.security == "none" and not settings.plaintext and not is_loopback(settings.host):
        why = "none is for a server on this machine; set plaintext: true to send unencrypted to others"
        raise ConfigurationError(f"{section}.security", why)
    if settings.password_file and settings.token_file:
        raise ConfigurationError(f"{section}.token_file", "a password and a token are two ways to sign in: give one")
    secret = settings.password_file or settings.token_file
    if (secret is None) != (settings.username is None):
        missing = "username" if settings.username is None else "password_file"
        raise ConfigurationError(f"{section}.{missing}", "a user name and a password or token belong together")
    if settings.callback_password_file:
        password = read_line(f"{section}.callback_password_file", settings.callback_password_file)
        if len(password) < _CALLBACK_PASSWORD_BYTES:
            why = f"must hold at least {_CALLBACK_PASSWORD_BYTES} bytes"
            raise ConfigurationError(f"{section}.callback_password_file", why)
    return Access(
        host=settings.host,
        port=settings.port or PORTS[settings.security],
        security=settings.security,
        tls=None if settings.security == "none" else _trust(section, settings.ca_file),
        our_name=_our_name(),
        username=settings.username,
        password=settings.password_file and read_line(f"{section}.password_file", settings.password_file),
        token=settings.token_file and read_line(f"{section}.token_file", settings.token_file),
    )


def read_author(section: str, settings: EmailSettings) -> Author:
    """Read who sends; ConfigurationError names the setting that cannot be used."""
    name, mailbox = parseaddr(settings.sender)
    mailbox = _mailbox(f"{section}.sender", mailbox)
    domain = mailbox.rpartition("@")[2]
    reply_to = settings.reply_to and _mailbox(f"{section}.reply_to", settings.reply_to)
    bounces_to = settings.bounces_to and _mailbox(f"{section}.bounces_to", settings.bounces_to)
    return Author(
        name=name,
        mailbox=mailbox,
        bounces_to=bounces_to or mailbox,
        reply_to=reply_to,
        domain=domain,
        provider=settings.provider,
        unsubscribing=read_unsubscribing(section, settings),
        signer=_signer(section, settings, domain),
    )


def _signer(section: str, settings: EmailSettings, domain: str) -> DkimSigner | None:
    file, selector = settings.dkim_key_file, settings.dkim_selector
    if file is None and selector is None:
        return None
    if file is None or selector is None:
        missing = "dkim_key_file" if file is None else "dkim_selector"
        raise ConfigurationError(f"{section}.{missing}", "a key and its selector belong together")
    return read_signer(section, file, selector, settings.dkim_domain or domain)


def _mailbox(setting: str, text: str) -> str:
    mailbox = canonical(text)
    if why := why_no_mailbox(mailbox):
        raise ConfigurationError(setting, why)
    return mailbox


def _trust(section: str, ca_file: str | None) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=ca_file)
    except ssl.SSLError:
        raise ConfigurationError(f"{section}.ca_file", "holds no certificate") from None
    except OSError as error:
        raise ConfigurationError(f"{section}.ca_file", f"cannot read it: {error.strerror or 'unreadable'}") from None


def _our_name() -> str:
    """Return this machine's name where it has a full one, else an address that says nothing (RFC 5321, 4.1.4)."""
    name = socket.gethostname()
    return name if "." in name and name.isascii() else "[127.0.0.1]"
