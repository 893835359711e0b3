"""TLS alerts: how a server says why it ends a handshake (RFC 8446, section 6)."""

import ssl


def alert_of(error: BaseException | None) -> str:
    """Name the alert that the server sent, as `certificate_expired`; empty where *error* is something else.

    In TLS 1.3 the server judges a client's certificate after the client has done its part: such an alert comes with the
    first bytes that are read.
    """
    reason = (error.reason or "") if isinstance(error, ssl.SSLError) else ""
    return reason.partition("_ALERT_")[2].lower()
