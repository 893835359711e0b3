"""A Web Push sender's identity: the `vapid` header of RFC 8292."""

import functools

import msgspec
from cryptography.hazmat.primitives.asymmetric import ec

from waypost.lab.jose import es256_holds, from_base64url, parse_jwt


class VapidIdentity(msgspec.Struct, frozen=True):
    """A sender's verified identity."""

    public_key: bytes
    audience: str
    expires_at: float
    subject: object


def parameters(header: str) -> dict[str, str]:
    """Split the parameters of RFC 8292 section 3; those it does not know are ignored."""
    scheme, _, rest = header.partition(" ")
    if scheme.lower() != "vapid":
        return {}
    return dict(part.strip().partition("=")[::2] for part in rest.split(","))


@functools.lru_cache(maxsize=1000)
def public_key(text: str) -> tuple[bytes, ec.EllipticCurvePublicKey] | None:
    """Read an uncompressed point of P-256 in base64url."""
    try:
        point = from_base64url(text)
        key = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), point)
    except ValueError:
        return None
    return (point, key) if len(point) == 65 else None


def read_vapid(header: str) -> VapidIdentity | None:
    """Parse and verify RFC 8292 section 3."""
    given = parameters(header)
    jwt, public = parse_jwt(given.get("t", "")), public_key(given.get("k", ""))
    if jwt is None or public is None:
        return None
    expires_at = jwt.claims.get("exp")
    if not isinstance(expires_at, int) or not es256_holds(jwt, public[1]):
        return None
    return VapidIdentity(public[0], str(jwt.claims.get("aud")), expires_at, jwt.claims.get("sub", ""))
