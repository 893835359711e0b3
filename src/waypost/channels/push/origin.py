"""The address of a provider, and whom to trust there, from a section of the settings (``apps.<app>.<channel>``)."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Final, Literal
from urllib.parse import urlsplit

from waypost.domain.errors import ConfigurationError
from waypost.http2 import Origin, Proxy, encode_headers, proxy_of

_ONE_BYTE_LENGTH: Final = 127
"""The length from which on a string's length takes more than a byte (RFC 7541, 5.1)."""
_HTTPS_PORT = 443
_SHARED = 64
"""The contexts that are kept; each takes about 0.05 s to make, and has the system's authorities in memory."""
Spoken = Literal["h2", "http/1.1"]


def trust(section: str, ca_file: str | None, protocol: Spoken = "h2") -> ssl.SSLContext:
    """Return a TLS context that trusts the authorities of *ca_file* alone, or the system's.

    It is one for all who trust the same and speak the same *protocol*: a pool has its context offer nothing but HTTP/2.
    So nothing else of it may be changed. ConfigurationError names ``<section>.ca_file`` if the file cannot be read or
    holds no certificate.
    """
    return _read(section, ca_file, _shared, protocol)


def own_trust(section: str, ca_file: str | None) -> ssl.SSLContext:
    """Return the same for one alone, who has something to add to it: a certificate."""
    return _read(section, ca_file, _made, "h2")


def origin_of(
    section: str, url: str, ca_file: str | None, proxy: str | None = None, own: ssl.SSLContext | None = None
) -> Origin:
    """Build the origin of ``https://host[:port]``, by way of *proxy*; *own* replaces the shared TLS context.

    ConfigurationError names ``<section>.endpoint``, ``.ca_file`` or ``.proxy``.
    """
    tls = own or trust(section, ca_file)
    try:
        host, port = _host_and_port(url)
    except ValueError as error:
        raise ConfigurationError(f"{section}.endpoint", str(error)) from None
    return Origin(host, port, tls, proxy=read_proxy(section, proxy))


def read_proxy(section: str, url: str | None) -> Proxy | None:
    """Read the setting ``<section>.proxy``; ConfigurationError names it where it means nothing."""
    try:
        return None if url is None else proxy_of(url)
    except ValueError as error:
        raise ConfigurationError(f"{section}.proxy", str(error)) from None


def authority_of(origin: Origin) -> str:
    """Return what ``:authority`` says for *origin*; the port only where it is not the usual one."""
    host = f"[{origin.host}]" if ":" in origin.host else origin.host
    return host if origin.port == _HTTPS_PORT else f"{host}:{origin.port}"


def post_to(authority: str) -> bytes:
    """Encode the header block that a POST begins with; the path follows."""
    return encode_headers([(b":method", b"POST"), (b":scheme", b"https"), (b":authority", authority.encode("ascii"))])


@lru_cache(maxsize=8192)
def sized(body_bytes: int) -> bytes:
    """Encode the length of the body: some servers answer 411 without it (RFC 9110 section 15.5.12).

    Encoded once for each length: no body has more than a few thousand bytes.
    """
    return encode_headers([(b"content-length", str(body_bytes).encode())])


def path_field(path: str) -> bytes:
    """Encode where a request goes: a literal that nobody need remember, under its static name (RFC 7541, 6.2.2)."""
    text = path.encode()
    if len(text) < _ONE_BYTE_LENGTH:
        return b"\x04%c%b" % (len(text), text)
    return encode_headers(((b":path", text),))


def path_before(start: str, length: int) -> bytes:
    """Encode a path up to where *start* ends, and the *length* bytes begin that follow: the same for as long ones."""
    whole = path_field(start + "0" * length)
    return whole[: len(whole) - length]


def _host_and_port(url: str) -> tuple[str, int]:
    parts = urlsplit(url)
    if parts.scheme != "https" or not parts.hostname or parts.username is not None:
        raise ValueError("must be https://host or https://host:port")
    if parts.path not in ("", "/") or parts.query or parts.fragment:
        raise ValueError("must not have a path")
    return parts.hostname, parts.port or _HTTPS_PORT


Make = Callable[[str | None, bytes, Spoken], ssl.SSLContext]


def _read(section: str, ca_file: str | None, make: Make, protocol: Spoken) -> ssl.SSLContext:
    """Make a context of the file as it is now."""
    try:
        return make(ca_file, b"" if ca_file is None else Path(ca_file).read_bytes(), protocol)
    except OSError as error:
        raise ConfigurationError(f"{section}.ca_file", f"cannot be used: {error.strerror or error}") from None


def _made(ca_file: str | None, content: bytes, protocol: Spoken) -> ssl.SSLContext:
    """Build a TLS context; *content* is the file's, *protocol* what will be spoken: contexts are shared by both."""
    context = ssl.create_default_context(cafile=ca_file)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


_shared = lru_cache(maxsize=_SHARED)(_made)
