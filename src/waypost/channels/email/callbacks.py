"""Callbacks of mail providers, which know a password that stands in the address they post to (HTTP Basic)."""

from __future__ import annotations

import base64
import hmac
from collections.abc import Sequence

from waypost.channels.email.bounces import read_dsn, read_postmark, read_ses
from waypost.channels.email.settings import Provider
from waypost.ports.callbacks import CallbackRequest, ForgedCallback, TargetReport

_READERS = {"ses": read_ses, "postmark": read_postmark}


def reports(password: str, provider: Provider, request: CallbackRequest) -> Sequence[TargetReport]:
    """Read a callback; ForgedCallback where it does not bring *password*.

    A body of type ``message/rfc822`` is a notification that a mail server wrote; any other is the provider's.
    """
    if not hmac.compare_digest(_password_of(request).encode(), password.encode()):
        raise ForgedCallback
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == "message/rfc822":
        return read_dsn(request.body)
    read = _READERS.get(provider)
    return () if read is None else read(request.body)


def _password_of(request: CallbackRequest) -> str:
    """Return what follows the user's name in the header ``authorization``; nothing where there is none."""
    scheme, _, said = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "basic":
        return ""
    try:
        return base64.b64decode(said, validate=True).decode().partition(":")[2]
    except ValueError:
        return ""
