"""Whom a client trusts, and who it says it is."""

from __future__ import annotations

import ssl
from pathlib import Path


def trust(ca_file: Path | None, certificate_file: Path | None) -> ssl.SSLContext:
    """Build TLS 1.2 or newer, trusting *ca_file* alone or the system's authorities; OSError for a useless file."""
    tls = ssl.create_default_context(cafile=ca_file)
    if certificate_file is not None:
        tls.load_cert_chain(certificate_file, password=lambda: "")  # an encrypted key must not ask at a terminal
    return tls
