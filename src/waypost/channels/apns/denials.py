"""Refusals of a credential without an answer to a request: by GOAWAY, or by ending the TLS handshake.

Sources: developer.apple.com, "Handling notification responses from APNs" (GOAWAY carries a reason of the same table);
RFC 8446, section 6.2 (alerts that are about a client's certificate).
"""

from __future__ import annotations

from typing import assert_never

import msgspec
from msgspec import Struct

from waypost.channels.apns.errors import REASONS
from waypost.channels.push.answers import Meaning
from waypost.channels.push.reading import read_json
from waypost.domain.outcome import CredentialRejected
from waypost.http2 import ConnectFailed, ConnectionClosed, ConnectionOpened, GoAwayReceived, PoolEvent

ALERTS: dict[str, str] = {
    "access_denied": "the client certificate may not push",
    "bad_certificate": "the client certificate is not accepted",
    "certificate_expired": "the client certificate has expired",
    "certificate_required": "a client certificate is required",
    "certificate_revoked": "the client certificate was revoked",
    "certificate_unknown": "the client certificate is not accepted",
    "unknown_ca": "the client certificate was not issued by Apple",
    "unsupported_certificate": "the client certificate is of the wrong kind",
}


class _Debug(Struct):
    reason: str = ""


_decoder = msgspec.json.Decoder(_Debug)


def denial_in(event: PoolEvent) -> CredentialRejected | None:
    """Read from *event* that the credential was refused; None where it says nothing of that."""
    match event:
        case GoAwayReceived(debug=debug):
            said = read_json(_decoder, debug)
            code = said.reason if said is not None else ""
            meaning, why = REASONS.get(code, (None, ""))
            return CredentialRejected(code, why) if meaning is Meaning.DENIED else None
        case ConnectFailed(alert=alert) | ConnectionClosed(alert=alert):
            return CredentialRejected(f"tls_{alert}", ALERTS[alert]) if alert in ALERTS else None
        case ConnectionOpened():
            return None
        case _:
            assert_never(event)
