"""DKIM signatures (RFC 6376): rsa-sha256, both parts canonicalized ``relaxed``."""

from __future__ import annotations

import hashlib
import re
from base64 import b64encode
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from waypost.domain.errors import ConfigurationError
from waypost.domain.time import SECOND_MS, Instant

ADDED_TWICE: Final = ("from", "subject", "to")
"""Signed once more than they are there, so that nobody can put a second one before ours."""
_SPACES = re.compile(rb"[ \t]+")
_KEY_BITS = 1024
Header = tuple[str, bytes]
"""A name, and what stands between its colon and the end of its last line."""


class DkimSigner:
    """A key, and the name under which its public half is published."""

    def __init__(self, domain: str, selector: str, key: rsa.RSAPrivateKey) -> None:
        self._domain, self._selector, self._key = domain, selector, key

    def sign(self, headers: Sequence[Header], body_hash: str, at: Instant) -> bytes:
        """Return the value of ``DKIM-Signature`` for all of *headers*, of which equal ones count from the last."""
        names = [name.lower() for name, _ in headers]
        signed = ":".join([*reversed(names), *ADDED_TWICE])
        unsigned = (
            f"v=1; a=rsa-sha256; c=relaxed/relaxed; d={self._domain}; s={self._selector};\r\n"
            f" t={at // SECOND_MS}; bh={body_hash};\r\n h={signed.replace(':', ':' + chr(13) + chr(10) + '  ')};\r\n b="
        ).encode()
        text = b"".join(_relaxed(name, value) + b"\r\n" for name, value in reversed(headers))
        text += _relaxed("dkim-signature", unsigned)
        signature = b64encode(self._key.sign(text, padding.PKCS1v15(), hashes.SHA256()))
        lines = [signature[at : at + 72] for at in range(0, len(signature), 72)]
        return unsigned + b"\r\n ".join(lines)


def body_hash_of(body: bytes) -> str:
    """Return the hash of *body*, whose lines end with CR LF."""
    lines = [_SPACES.sub(b" ", line).rstrip(b" ") for line in body.split(b"\r\n")]
    canonical = b"\r\n".join(lines).rstrip(b"\r\n")
    return b64encode(hashlib.sha256(canonical + b"\r\n" if canonical else b"").digest()).decode()


def read_signer(section: str, file: str, selector: str, domain: str) -> DkimSigner:
    """Read the key in *file*; ConfigurationError names ``<section>.dkim_key_file``."""
    setting = f"{section}.dkim_key_file"
    try:
        key = load_pem_private_key(Path(file).read_bytes(), password=None)
    except OSError as error:
        raise ConfigurationError(setting, f"cannot read the signing key: {error.strerror or 'unreadable'}") from None
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise ConfigurationError(setting, "is not an unencrypted private key in PEM form") from None
    if not isinstance(key, rsa.RSAPrivateKey) or key.key_size < _KEY_BITS:
        raise ConfigurationError(setting, f"must hold an RSA key of at least {_KEY_BITS} bits")
    return DkimSigner(domain, selector, key)


def _relaxed(name: str, value: bytes) -> bytes:
    return name.lower().encode() + b":" + _SPACES.sub(b" ", value.replace(b"\r\n", b"")).strip()
