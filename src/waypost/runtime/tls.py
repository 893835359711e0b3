"""The TLS of a listener: its certificate, and what it asks of clients, in files that may change while it listens."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Sequence
from pathlib import Path

from cryptography import x509
from msgspec import Struct

from waypost.domain.errors import ConfigurationError
from waypost.domain.time import Instant, from_datetime
from waypost.runtime.listening import TlsSettings


class Shown(Struct, frozen=True):
    """The certificate files of a listener as they were read together."""

    context: ssl.SSLContext
    certificate: bytes
    key: bytes
    client_ca: bytes | None
    ends_at: Instant

    def __repr__(self) -> str:
        return f"Shown(ends_at={self.ends_at})"  # the key is not shown


class ServerTls:
    """The TLS of one listener; fulfils ``runtime.reloader.LoadedCredential``: open connections go on."""

    def __init__(self, name: str, settings: TlsSettings) -> None:
        """Read the files; a ConfigurationError names the key below *name*, such as ``rest.tls``."""
        self.name = name
        self._settings = settings
        self.shown = read(name, settings)
        self.context = self.shown.context
        """The context for the listener, for as long as it listens."""
        self.context.sni_callback = self._show

    def made_of(self) -> tuple[object, Sequence[str]]:
        """See ``runtime.reloader.LoadedCredential``."""
        settings = self._settings
        files = (settings.certificate_file, settings.key_file, settings.client_ca_file)
        return settings, [file for file in files if file is not None]

    async def reload(self) -> None:
        """Read the files again; with a ConfigurationError all stays as it is."""
        self.shown = await asyncio.to_thread(read, self.name, self._settings)

    def ends_at(self) -> Instant:
        """Return when the first of the certificates ends, those of the clients' authorities among them."""
        return self.shown.ends_at

    def _show(self, connection: ssl.SSLObject, _server_name: str | None, _listening: ssl.SSLContext) -> None:
        """Set the present context in each handshake, whether or not a name is asked for."""
        connection.context = self.shown.context


def read(name: str, settings: TlsSettings) -> Shown:
    """Read the files of *settings*, if they can serve; else a ConfigurationError names the key below *name*."""
    certificate = _content(f"{name}.certificate_file", settings.certificate_file)
    key = _content(f"{name}.key_file", settings.key_file)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    ends_at = _end(f"{name}.certificate_file", certificate)
    try:
        context.load_cert_chain(settings.certificate_file, settings.key_file, password=lambda: "")
    except (OSError, ValueError):
        raise ConfigurationError(f"{name}.key_file", "is not the unencrypted private key of the certificate") from None
    client_ca = None
    if settings.client_ca_file is not None:
        client_ca = _content(f"{name}.client_ca_file", settings.client_ca_file)
        ends_at = min(ends_at, _end(f"{name}.client_ca_file", client_ca))
        _ask_clients(context, client_ca)
    return Shown(context, certificate, key, client_ca, ends_at)


def _ask_clients(context: ssl.SSLContext, authorities: bytes) -> None:
    """Take only who has a certificate of *authorities*, and ask at each connection.

    In a resumed session nothing would be verified again, whatever was reloaded: so there are no tickets, and no TLS
    1.2, whose sessions OpenSSL keeps in a cache that Python cannot turn off.
    """
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(cadata=authorities.decode("ascii", "replace"))
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.num_tickets = 0


def _content(key: str, file: str) -> bytes:
    try:
        return Path(file).read_bytes()
    except OSError as error:
        raise ConfigurationError(key, f"cannot be read: {error.strerror or 'unreadable'}") from None


def first_end(pem: bytes) -> Instant | None:
    """Return when the first of the certificates in a file ends; None where there is none in it."""
    try:
        return from_datetime(min(each.not_valid_after_utc for each in x509.load_pem_x509_certificates(pem)))
    except ValueError:
        return None


def _end(key: str, pem: bytes) -> Instant:
    ends_at = first_end(pem)
    if ends_at is None:
        raise ConfigurationError(key, "holds no certificate in PEM form")
    return ends_at
