"""A client certificate in place of provider tokens.

Source: developer.apple.com, "Establishing a certificate-based connection to APNs".
"""

from __future__ import annotations

import ssl

from waypost.domain.errors import ConfigurationError


def use_certificate(setting: str, file: str, tls: ssl.SSLContext) -> None:
    """Let *tls* present the client certificate in *file*. ConfigurationError names *setting*."""
    try:
        # An encrypted key must not make OpenSSL ask at a terminal.
        tls.load_cert_chain(file, password=lambda: "")
    except ssl.SSLError:
        raise ConfigurationError(
            setting, "does not hold a certificate and its unencrypted private key in PEM form"
        ) from None
    except OSError as error:
        why = error.strerror or "unreadable"
        raise ConfigurationError(setting, f"cannot read the client certificate: {why}") from None
