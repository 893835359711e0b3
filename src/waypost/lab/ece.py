"""Decrypting Web Push messages as a browser does (RFC 8188 and RFC 8291)."""

import hashlib
import hmac

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

HEADER_BYTES = 86
_TAG_BYTES = 16


class Undecryptable(msgspec.Struct, frozen=True):
    """The message cannot be read; *why* names the rule it breaks."""

    why: str


class Decrypted(msgspec.Struct, frozen=True):
    """A decrypted message and the sender's one-time public key (65 bytes, uncompressed)."""

    plaintext: bytes
    sender_key: bytes


def open_message(
    body: bytes, private_key: ec.EllipticCurvePrivateKey, public_key: bytes, auth_secret: bytes
) -> Decrypted | Undecryptable:
    """Decrypt one aes128gcm message with the browser's keys, checking each rule of RFC 8291 section 4."""
    if len(body) < HEADER_BYTES + 1 + _TAG_BYTES:
        return Undecryptable("shorter than the header and one empty record")
    salt, record_size, key_length = body[:16], int.from_bytes(body[16:20]), body[20]
    sender_key, record = body[21:HEADER_BYTES], body[HEADER_BYTES:]
    if key_length != 65 or sender_key[0] != 4:
        return Undecryptable("keyid is not an uncompressed P-256 point")
    if record_size < len(record):
        return Undecryptable("more than one record")
    if record_size < 18:
        return Undecryptable("record size below 18")
    try:
        point = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), sender_key)
    except ValueError:
        return Undecryptable("keyid is not on the curve")
    key, nonce = content_keys(private_key.exchange(ec.ECDH(), point), auth_secret, public_key, sender_key, salt)
    try:
        padded = AESGCM(key).decrypt(nonce, record, None)
    except InvalidTag:
        return Undecryptable("authentication tag does not hold")
    plaintext = padded.rstrip(b"\0")
    if plaintext[-1:] != b"\x02":
        return Undecryptable("the last record does not end in delimiter 0x02")
    return Decrypted(plaintext[:-1], sender_key)


def content_keys(
    shared_secret: bytes, auth_secret: bytes, receiver_key: bytes, sender_key: bytes, salt: bytes
) -> tuple[bytes, bytes]:
    """Derive the content key (16 bytes) and nonce (12 bytes) of RFC 8291 section 3.4."""
    key_from_secret = _hmac(auth_secret, shared_secret)
    input_key = _hmac(key_from_secret, b"WebPush: info\0" + receiver_key + sender_key + b"\x01")
    pseudo_random = _hmac(salt, input_key)
    key = _hmac(pseudo_random, b"Content-Encoding: aes128gcm\0\x01")[:16]
    nonce = _hmac(pseudo_random, b"Content-Encoding: nonce\0\x01")[:12]
    return key, nonce


def _hmac(key: bytes, data: bytes) -> bytes:
    return hmac.digest(key, data, hashlib.sha256)
