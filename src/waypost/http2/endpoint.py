"""An origin from its URL, and whom to trust there."""

import ssl
from urllib.parse import urlsplit

from .settings import Origin

_HTTPS_PORT = 443


def trust(ca_file: str | None) -> ssl.SSLContext:
    """A client's TLS context: the authorities of *ca_file* alone, or the system's.

    OSError (ssl.SSLError is one) if the file cannot be read or holds no certificate.
    """
    context = ssl.create_default_context(cafile=ca_file)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


def origin_of(url: str, tls: ssl.SSLContext) -> Origin:
    """The origin of ``https://host[:port]``; ValueError for anything else, also for a path or a user name."""
    parts = urlsplit(url)
    if parts.scheme != "https" or not parts.hostname or parts.username is not None:
        raise ValueError("must be https://host or https://host:port")
    if parts.path not in ("", "/") or parts.query or parts.fragment:
        raise ValueError("must not have a path")
    return Origin(parts.hostname, parts.port or _HTTPS_PORT, tls)


def authority_of(origin: Origin) -> bytes:
    """What ``:authority`` says for *origin*; the port only where it is not the usual one."""
    host = f"[{origin.host}]" if ":" in origin.host else origin.host
    return (host if origin.port == _HTTPS_PORT else f"{host}:{origin.port}").encode("ascii")
