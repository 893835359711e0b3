"""Signing keys, and tokens signed with them (RFC 7515, section 7.1; ES256: RFC 7518, section 3.4)."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Callable
from pathlib import Path

import msgspec
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from waypost.domain.errors import ConfigurationError


def read_p256(setting: str, file: str) -> ec.EllipticCurvePrivateKey:
    """Read the key in *file*, in PKCS#8 or the older EC form; ConfigurationError names *setting*."""
    try:
        key = load_pem_private_key(Path(file).read_bytes(), password=None)
    except OSError as error:
        raise ConfigurationError(setting, f"cannot read the signing key: {error.strerror or 'unreadable'}") from None
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise ConfigurationError(setting, "is not an unencrypted private key in PEM form") from None
    if not isinstance(key, ec.EllipticCurvePrivateKey) or not isinstance(key.curve, ec.SECP256R1):
        raise ConfigurationError(setting, "must hold an EC key on the curve P-256")
    return key


def signed(header: dict[str, str], claims: dict[str, str | int], sign: Callable[[bytes], bytes]) -> str:
    """Build a JWT, signed by *sign* as the header's ``alg`` says."""
    text = f"{base64url(msgspec.json.encode(header))}.{base64url(msgspec.json.encode(claims))}"
    return f"{text}.{base64url(sign(text.encode()))}"


def signed_es256(key: ec.EllipticCurvePrivateKey, header: dict[str, str], claims: dict[str, str | int]) -> str:
    """Build a JWT signed with ES256; the same for the same content (RFC 6979)."""

    def sign(text: bytes) -> bytes:
        r, s = decode_dss_signature(key.sign(text, ec.ECDSA(hashes.SHA256(), deterministic_signing=True)))
        return r.to_bytes(32, "big") + s.to_bytes(32, "big")

    return signed({"alg": "ES256"} | header, claims, sign)


def base64url(octets: bytes) -> str:
    """Encode without padding, as all of these formats want it."""
    return urlsafe_b64encode(octets).rstrip(b"=").decode()
