"""The keys of an issuer: a secret, or what a JWK set holds (RFC 7517). Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Final

import jwt
import msgspec
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from msgspec import Meta, Struct

from waypost.adapters.jwt.settings import Algorithm

KEYS_LIMIT: Final = 64
RSA_BITS: Final = 2048
"""The least size of an RSA key, bits (RFC 7518 section 3.3)."""
_CURVES: Final = {Algorithm.ES256: "P-256", Algorithm.ES384: "P-384", Algorithm.ES512: "P-521"}

KeySet = Mapping[tuple[str | None, Algorithm], jwt.PyJWK]
"""Each key by its id and the one algorithm that it verifies; without an id where it is the only one for that."""


class _Jwk(Struct, frozen=True):
    """The parts of a public key that are read; others of a set, private parts too, are not."""

    kty: str
    kid: Annotated[str, Meta(max_length=256)] | None = None
    use: str | None = None
    key_ops: list[str] | None = None
    alg: str | None = None
    n: str | None = None
    e: str | None = None
    crv: str | None = None
    x: str | None = None
    y: str | None = None


class _Jwks(Struct, frozen=True):
    keys: Annotated[list[_Jwk], Meta(max_length=KEYS_LIMIT)]


def shared(secret: str, algorithms: Iterable[Algorithm]) -> KeySet:
    """Build the keys of an issuer that signs with a secret; whatever id a token names, it is this one."""
    k = jwt.utils.base64url_encode(secret.encode()).decode()
    return {(None, each): jwt.PyJWK({"kty": "oct", "k": k}, algorithm=each) for each in algorithms}


def parsed(text: bytes, algorithms: Iterable[Algorithm]) -> KeySet:
    """Parse the keys of a JWK set that verify one of *algorithms*; ValueError where it is none or has equal ids.

    Keys for another use, of another kind, too short, or unreadable are passed over (RFC 7517 section 5).
    """
    try:
        found = msgspec.json.decode(text, type=_Jwks).keys
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise ValueError("it is no JWK set") from None
    keys: dict[tuple[str | None, Algorithm], jwt.PyJWK] = {}
    for algorithm in algorithms:
        fitting = [(jwk.kid, key) for jwk in found if (key := _key(jwk, algorithm)) is not None]
        for kid, key in fitting:
            if (kid, algorithm) in keys:
                raise ValueError("it has two keys with the same id")
            keys[kid, algorithm] = key
        if len(fitting) == 1:
            keys[None, algorithm] = fitting[0][1]
    return keys


def _key(jwk: _Jwk, algorithm: Algorithm) -> jwt.PyJWK | None:
    """Read *jwk* as a key that verifies *algorithm* and nothing else; None where it does not."""
    curve = _CURVES.get(algorithm)
    is_kind = jwk.kty == "RSA" if curve is None else (jwk.kty == "EC" and jwk.crv == curve)
    is_meant = jwk.use in (None, "sig") and jwk.alg in (None, algorithm) and "verify" in (jwk.key_ops or ["verify"])
    if not is_kind or not is_meant:
        return None
    names = ("kty", "n", "e") if curve is None else ("kty", "crv", "x", "y")
    public: dict[str, Any] = {name: getattr(jwk, name) for name in names}
    try:
        key = jwt.PyJWK(public, algorithm=algorithm)
    except (jwt.PyJWTError, ValueError, TypeError):
        return None
    return None if isinstance(key.key, RSAPublicKey) and key.key.key_size < RSA_BITS else key
