"""Reading and checking compact JWTs (RFC 7515, 7518), written apart from the code that signs them."""

import base64
import binascii
import re
from typing import Any

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

_BASE64URL = re.compile(r"[A-Za-z0-9_-]*\Z")


class Jwt(msgspec.Struct, frozen=True):
    """A parsed token; nothing is known of its signature yet."""

    header: dict[str, Any]
    claims: dict[str, Any]
    signed: bytes
    signature: bytes


def from_base64url(text: str) -> bytes:
    """Decode base64url without padding (RFC 7515 section 2). Raises ValueError for anything else."""
    if not _BASE64URL.match(text):
        raise ValueError("not base64url without padding")
    try:
        return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except binascii.Error as error:
        raise ValueError("not base64url") from error


def to_base64url(data: bytes) -> str:
    """Encode as base64url without padding."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def parse_jwt(text: str) -> Jwt | None:
    """Take a compact JWT apart; None when it is not one."""
    parts = text.split(".")
    if len(parts) != 3:
        return None
    try:
        header = msgspec.json.decode(from_base64url(parts[0]), type=dict[str, Any])
        claims = msgspec.json.decode(from_base64url(parts[1]), type=dict[str, Any])
        signature = from_base64url(parts[2])
    except (ValueError, msgspec.DecodeError):
        return None
    return Jwt(header, claims, f"{parts[0]}.{parts[1]}".encode(), signature)


def es256_holds(jwt: Jwt, key: ec.EllipticCurvePublicKey) -> bool:
    """Verify an ES256 signature: 64 bytes, R then S (RFC 7518 section 3.4); a DER signature does not hold."""
    if jwt.header.get("alg") != "ES256" or len(jwt.signature) != 64:
        return False
    r, s = int.from_bytes(jwt.signature[:32]), int.from_bytes(jwt.signature[32:])
    try:
        key.verify(encode_dss_signature(r, s), jwt.signed, ec.ECDSA(hashes.SHA256()))
    except InvalidSignature:
        return False
    return True


def rs256_holds(jwt: Jwt, key: rsa.RSAPublicKey) -> bool:
    """Verify an RS256 signature (RFC 7518 section 3.3)."""
    if jwt.header.get("alg") != "RS256":
        return False
    try:
        key.verify(jwt.signature, jwt.signed, padding.PKCS1v15(), hashes.SHA256())
    except InvalidSignature:
        return False
    return True
