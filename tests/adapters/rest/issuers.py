"""Issuers of tokens with real keys, and whatever one could do with them."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

from tests.contract.clock import START
from waypost.adapters.jwt.claims import Issuer
from waypost.adapters.jwt.settings import Algorithm, IssuerSettings
from waypost.domain.ids import AppId
from waypost.domain.scope import Scope

LOGIN, SERVICES = "https://login.example", "https://services.example"
AUDIENCE = "waypost-demo"
SECRET = "0123456789abcdef" * 4
NOW_S = START // 1000


@cache
def rsa_key(bits: int = 2048, n: int = 0) -> rsa.RSAPrivateKey:
    """A key pair; another for each *n*."""
    return rsa.generate_private_key(65537, bits)


@cache
def ec_key(n: int = 0) -> ec.EllipticCurvePrivateKey:
    """A key pair on P-256; another for each *n*."""
    return ec.generate_private_key(ec.SECP256R1())


def jwk(key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey, kid: str | None, **more: str) -> dict[str, str]:
    """The public half as a JWK (RFC 7517)."""
    if isinstance(key, rsa.RSAPrivateKey):
        numbers = key.public_key().public_numbers()
        found = {"kty": "RSA", "n": _number(numbers.n), "e": _number(numbers.e)}
    else:
        point = key.public_key().public_numbers()
        found = {"kty": "EC", "crv": "P-256", "x": _number(point.x, 32), "y": _number(point.y, 32)}
    return found | ({} if kid is None else {"kid": kid}) | more


def key_set(*keys: dict[str, Any]) -> bytes:
    """A JWK set."""
    return json.dumps({"keys": keys}).encode()


def claims(**changed: Any) -> dict[str, Any]:
    """What user-1's token says for an hour; a claim given as None is left out."""
    said = {"iss": LOGIN, "aud": AUDIENCE, "sub": "user-1", "iat": NOW_S, "exp": NOW_S + 3_600} | changed
    return {name: value for name, value in said.items() if value is not None}


def token(said: dict[str, Any] | bytes, key: Any, alg: str = "RS256", kid: str | None = "a", **header: Any) -> str:
    """*said*, signed; the signature is made here, so that one which no library would make can be, too."""
    head: dict[str, Any] = {"alg": alg, "typ": "JWT"} | ({} if kid is None else {"kid": kid}) | header
    payload = said if isinstance(said, bytes) else json.dumps(said).encode()
    signed = f"{_text(json.dumps(head).encode())}.{_text(payload)}"
    return f"{signed}.{_text(_signature(signed.encode(), key, alg))}"


def users_issuer(folder: Path, app: str = "demo", **changed: Any) -> Issuer:
    """Whose tokens are those of the app's end users; its key set is a file, with a key ``a`` (RSA) and ``e`` (EC)."""
    file = folder / f"{app}.jwks.json"
    file.write_bytes(key_set(jwk(rsa_key(), "a"), jwk(ec_key(), "e")))
    settings = IssuerSettings(
        issuer=LOGIN,
        audience=f"waypost-{app}",
        algorithms=(Algorithm.RS256, Algorithm.ES256),
        jwks_file=str(file),
        users=True,
        scopes=(Scope.DEVICES, Scope.READ),
        scope_claim="scope",
        claimed_scopes=tuple(Scope),
    )
    return Issuer(AppId(app), "login", msgspec.structs.replace(settings, **changed))


def services_issuer(app: str = "demo") -> Issuer:
    """Whose tokens are those of services, signed with a secret; what they may do is in a claim."""
    settings = IssuerSettings(
        issuer=SERVICES,
        audience=f"waypost-{app}",
        algorithms=(Algorithm.HS256,),
        secret=SECRET,
        scope_claim="scope",
        claimed_scopes=tuple(Scope),
    )
    return Issuer(AppId(app), "services", settings)


def user_token(user: str = "user-1", *scopes: Scope, **changed: Any) -> str:
    """A good token of *user*, whose issuer adds *scopes*."""
    return token(claims(sub=user, scope=" ".join(scopes), **changed), rsa_key())


def service_token(*scopes: Scope, **changed: Any) -> str:
    """A good token of a service that may do *scopes*."""
    said = claims(iss=SERVICES, sub="billing", scope=[*scopes], **changed)
    return token(said, SECRET.encode(), "HS256", None)


def public_pem(key: rsa.RSAPrivateKey) -> bytes:
    """What everybody may know of *key*."""
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    return key.public_key().public_bytes(serialization.Encoding.PEM, form)


def _signature(signed: bytes, key: Any, alg: str) -> bytes:
    if isinstance(key, rsa.RSAPrivateKey):
        return key.sign(signed, padding.PKCS1v15(), hashes.SHA256())
    if isinstance(key, ec.EllipticCurvePrivateKey):
        r, s = decode_dss_signature(key.sign(signed, ec.ECDSA(hashes.SHA256())))
        return r.to_bytes(32, "big") + s.to_bytes(32, "big")
    digest = {"HS384": hashlib.sha384, "HS512": hashlib.sha512}.get(alg, hashlib.sha256)
    return b"" if key is None else hmac.new(key, signed, digest).digest()


def _number(number: int, size: int | None = None) -> str:
    return _text(number.to_bytes(size or (number.bit_length() + 7) // 8, "big"))


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")
