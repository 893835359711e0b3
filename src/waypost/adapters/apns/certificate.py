"""A client certificate in place of provider tokens, and its end.

Source: developer.apple.com, "Establishing a certificate-based connection to APNs".
"""

from __future__ import annotations

import ssl
from pathlib import Path

from cryptography import x509

from waypost.domain.errors import ConfigurationError
from waypost.domain.ids import CredentialId
from waypost.domain.time import DAY_MS, Instant, from_datetime, later
from waypost.telemetry.events import Event
from waypost.telemetry.sink import Telemetry

WARN_DAYS = 30
"""How long before its end a certificate is spoken of."""


def use_certificate(setting: str, file: str, tls: ssl.SSLContext) -> Instant:
    """Let *tls* present the certificate in *file*; when it ends. ConfigurationError names *setting*."""
    try:
        # An encrypted key must not make OpenSSL ask at a terminal.
        tls.load_cert_chain(file, password=lambda: "")
        certificate = x509.load_pem_x509_certificate(Path(file).read_bytes())
    except ssl.SSLError:
        raise ConfigurationError(
            setting, "does not hold a certificate and its unencrypted private key in PEM form"
        ) from None
    except OSError as error:
        why = error.strerror or "unreadable"
        raise ConfigurationError(setting, f"cannot read the client certificate: {why}") from None
    return from_datetime(certificate.not_valid_after_utc)


class ExpiryWatch:
    """Warns of a certificate's end once a day, from 30 days before."""

    def __init__(self, ends_at: Instant, credential: CredentialId, telemetry: Telemetry) -> None:
        self._ends_at = ends_at
        self._credential = credential
        self._telemetry = telemetry
        self._look_again_at = Instant(0)

    def look(self, now: Instant) -> None:
        """Say it where the time has come; cheap between two days."""
        if now < self._look_again_at:
            return
        self._look_again_at = later(now, DAY_MS)
        if self.why(now) is not None:
            days_left = (self._ends_at - now) // DAY_MS
            self._telemetry.event(Event.CREDENTIAL_ENDING, credential=self._credential, days_left=days_left)

    def why(self, now: Instant) -> str | None:
        """What health says of it; None while its end is far."""
        days_left = (self._ends_at - now) // DAY_MS
        if days_left >= WARN_DAYS:
            return None
        return f"the client certificate ends in {days_left} days" if days_left >= 0 else "the client certificate ended"
