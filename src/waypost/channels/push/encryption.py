"""Message encryption for Web Push (RFC 8291) in one record of ``aes128gcm`` (RFC 8188)."""

from __future__ import annotations

import os
from hashlib import sha256

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from waypost.domain.device import SubscriptionKeys

CURVE = ec.SECP256R1()
RECORD_BYTES = 4096
HEADER_BYTES = 86
"""The bytes of the header: salt, record size, and our public key with its length."""
PLAINTEXT_LIMIT_BYTES = RECORD_BYTES - HEADER_BYTES - 17
"""A push service must take 4,096 bytes of body (RFC 8030 section 7.2): less header, delimiter and tag."""
_LAST_RECORD = b"\x02"
_POINT_BYTES = 65
_SALT_BYTES = 16
_SALTS_AT_ONCE = 256
"""The salts for which the system is asked at once."""
_drawn: list[bytes] = []
"""The salts that are drawn and not used yet."""
_SIZES = RECORD_BYTES.to_bytes(4, "big") + bytes((_POINT_BYTES,))
_ECDH = ec.ECDH()
_BLOCK_BYTES = 64
_INNER = bytes(each ^ 0x36 for each in range(256))
_OUTER = bytes(each ^ 0x5C for each in range(256))


class InvalidKeys(Exception):
    """The error that a subscription's keys are none: of the wrong length, or not a point on the curve."""

    def __init__(self, key: str, why: str) -> None:
        super().__init__(f"{key} {why}")
        self.key = key
        self.why = why


class SenderKeys:
    """The sender's key pairs: a new one for each message, or one for *reuse_s* seconds.

    RFC 8291 section 3.1 has a new pair for each message. With the same pair the content keys still differ, by the salt
    and by the browser's own key; but whoever learns the private half reads all messages of that time.
    """

    def __init__(self, reuse_s: float) -> None:
        self._reuse_s = reuse_s
        self._key: ec.EllipticCurvePrivateKey | None = None
        self._renew_at_s = 0.0

    def next(self, now_s: float) -> ec.EllipticCurvePrivateKey:
        """Return the key for one message, at *now_s* of a monotonic clock."""
        if self._key is None or now_s >= self._renew_at_s:
            self._key = ec.generate_private_key(CURVE)
            self._renew_at_s = now_s + self._reuse_s
        return self._key


def new_salt() -> bytes:
    """Draw the salt of one message.

    Many are drawn at once, since each draw lets go of the interpreter, which a busy thread then keeps for up to a
    millisecond.
    """
    if not _drawn:
        together = os.urandom(_SALT_BYTES * _SALTS_AT_ONCE)
        _drawn.extend([together[at : at + _SALT_BYTES] for at in range(0, len(together), _SALT_BYTES)])
    return _drawn.pop()


def public_key_of(keys: SubscriptionKeys) -> ec.EllipticCurvePublicKey:
    """Read the browser's key; InvalidKeys names ``p256dh`` or ``auth`` and what is wrong with it."""
    if len(keys.auth) != 16:
        raise InvalidKeys("auth", "must be 16 bytes")
    if len(keys.p256dh) != _POINT_BYTES:
        raise InvalidKeys("p256dh", "must be an uncompressed point of 65 bytes")
    try:
        return ec.EllipticCurvePublicKey.from_encoded_point(CURVE, keys.p256dh)
    except ValueError:
        raise InvalidKeys("p256dh", "is not a point on P-256") from None


def encrypt(plaintext: bytes, keys: SubscriptionKeys, own: ec.EllipticCurvePrivateKey, salt: bytes) -> bytes:
    """Encrypt the body for one subscription; InvalidKeys. *own* and *salt* must never be used together again."""
    theirs = public_key_of(keys)
    own_public = own.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
    secret = expand(
        mac(keys.auth, own.exchange(_ECDH, theirs)),
        # what of 65 bytes was read as a point is an uncompressed one, as it is wanted here
        b"".join((b"WebPush: info\x00", keys.p256dh, own_public)),
    )
    pseudo_random = mac(salt, secret)
    content_key = expand(pseudo_random, b"Content-Encoding: aes128gcm\x00")[:16]
    nonce = expand(pseudo_random, b"Content-Encoding: nonce\x00")[:12]
    record = AESGCM(content_key).encrypt(nonce, plaintext + _LAST_RECORD, None)
    return b"".join((salt, _SIZES, own_public, record))


def expand(key: bytes, info: bytes) -> bytes:
    """Compute the first block of HKDF-Expand with SHA-256 (RFC 5869 section 2.3)."""
    return mac(key, info + b"\x01")


def mac(key: bytes, message: bytes) -> bytes:
    """Compute HMAC with SHA-256 (RFC 2104); *key* has 64 bytes at most.

    What hmac.digest computes, in 0.6 of its time for messages as short as these: a body needs five.
    """
    padded = key.ljust(_BLOCK_BYTES, b"\x00")
    return sha256(padded.translate(_OUTER) + sha256(padded.translate(_INNER) + message).digest()).digest()
