"""The headers by which a reader's mail program unsubscribes (RFC 2369), with one click (RFC 8058)."""

from __future__ import annotations

import hashlib
import hmac
from base64 import urlsafe_b64encode
from pathlib import Path
from typing import Final

from msgspec import Struct

from waypost.channels.email.mailboxes import why_no_mailbox
from waypost.channels.email.settings import EmailSettings
from waypost.domain.device import Device
from waypost.domain.errors import ConfigurationError

TOKEN: Final = "{token}"  # noqa: S105 - a placeholder
_KEY_BYTES = 32
_URL_LIMIT = 300
_LINE_LIMIT = 960
"""What fits into a line of 998 bytes (RFC 5322, section 2.1.1): the longest names of users do not."""


class Unsubscribing(Struct, frozen=True):
    """The ways out that each message names."""

    url: str | None
    key: bytes
    mailto: str | None

    def headers(self, device: Device, of_message: str | None = None) -> list[tuple[str, bytes]]:
        """Return the headers for the reader at *device*; none where no way is set.

        An address that is *of_message* comes in the place of the setting's. It has to be https (RFC 8058, section 3.1).
        """
        url = None if self.url is None else self.url.replace(TOKEN, self.token(device))
        if of_message is not None and of_message.startswith("https://"):
            url = of_message
        if url is not None and len(url) > _LINE_LIMIT:
            url = None
        ways = [f"<{way}>" for way in (url, self.mailto and f"mailto:{self.mailto}") if way]
        if not ways:
            return []
        named = [("List-Unsubscribe", b" " + ",\r\n ".join(ways).encode())]
        if url is not None:
            named.append(("List-Unsubscribe-Post", b" List-Unsubscribe=One-Click"))
        return named

    def token(self, device: Device) -> str:
        """Name *device*: ``base64url(app LF user LF device)``, a dot, and ``base64url(HMAC-SHA256)`` of that."""
        said = urlsafe_b64encode(f"{device.app}\n{device.user_id}\n{device.device_id}".encode()).rstrip(b"=")
        signature = hmac.digest(self.key, said, hashlib.sha256)
        return f"{said.decode()}.{urlsafe_b64encode(signature).rstrip(b'=').decode()}"


def read_unsubscribing(section: str, settings: EmailSettings) -> Unsubscribing:
    """Read what the settings say of it; ConfigurationError names the one that cannot be used."""
    url, mailto = settings.unsubscribe_url, settings.unsubscribe_mailto
    if mailto is not None and (why := why_no_mailbox(mailto)):
        raise ConfigurationError(f"{section}.unsubscribe_mailto", why)
    if url is None:
        return Unsubscribing(None, b"", mailto)
    printable = url.isascii() and url.isprintable() and not set(url) & set(' <>,"')
    if not url.startswith("https://") or TOKEN not in url or not printable or len(url) > _URL_LIMIT:
        raise ConfigurationError(
            f"{section}.unsubscribe_url", f"must be https://… with {TOKEN} in it, at most {_URL_LIMIT} characters"
        )
    setting = f"{section}.unsubscribe_key_file"
    if settings.unsubscribe_key_file is None:
        raise ConfigurationError(setting, "is needed to sign the links of unsubscribe_url")
    try:
        key = Path(settings.unsubscribe_key_file).read_bytes().strip()
    except OSError as error:
        raise ConfigurationError(setting, f"cannot read the secret: {error.strerror or 'unreadable'}") from None
    if len(key) < _KEY_BYTES:
        raise ConfigurationError(setting, f"must hold at least {_KEY_BYTES} bytes")
    return Unsubscribing(url, key, mailto)
