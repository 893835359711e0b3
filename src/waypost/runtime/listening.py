"""The addresses on which a process listens."""

from __future__ import annotations

import ipaddress
from typing import Annotated

from msgspec import Meta, Struct


def is_loopback(host: str) -> bool:
    """Tell whether *host*, a name or an IP address, means this machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class Listen(Struct, frozen=True):
    """An address to listen on."""

    host: str
    """The host: a name or an IP address."""
    port: Annotated[int, Meta(ge=0, le=65_535)]
    """0 is any free port; the one taken is printed."""

    @classmethod
    def parse(cls, text: str) -> Listen:
        """Read ``host:port`` or ``[IPv6]:port``; anything else is a ValueError."""
        host, colon, port = text.rpartition(":")
        bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host
        if not colon or not bare or (":" in bare and bare == host):
            raise ValueError("expected host:port, such as 127.0.0.1:8080 or [::1]:8080")
        if not (port.isascii() and port.isdigit()) or int(port) > 65_535:
            raise ValueError("the port is a number from 0 (any) to 65535")
        return cls(bare, int(port))

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class TlsSettings(Struct, frozen=True, kw_only=True):
    """Settings of how connections are encrypted, and whose are accepted; TLS 1.2 at least."""

    certificate_file: str
    """The certificate and its intermediates (PEM)."""
    key_file: str
    """Its private key (PEM), unencrypted."""
    client_ca_file: str | None = None
    """The authorities (PEM) of clients' certificates, which are then required; HTTP clients need TLS 1.3."""
