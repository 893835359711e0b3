"""The identity of whoever speaks to Apple: provider tokens, client certificates, and what binds a connection to one."""

import re
import uuid
from collections.abc import Callable
from typing import Generic, Literal, TypeVar

import msgspec
from cryptography.hazmat.primitives.asymmetric import ec

from waypost.lab.client_certificates import ClientCertificate, read_certificate
from waypost.lab.exchange import GatewayAnswer, ProviderSession, Refusal, Request
from waypost.lab.jose import Jwt, es256_holds, parse_jwt

STREAMS_BEFORE_TOKEN, STREAMS = 1, 1000
_HOUR_S, _MIN_TOKEN_AGE_S = 3600, 1200
CANONICAL_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\Z")
EnvironmentReason = Literal["BadEnvironmentKeyInToken", "BadEnvironmentKeyIdInToken"]
"""The reason seen on the wire, and the one that Apple's documentation writes."""


class SigningKey(msgspec.Struct, frozen=True):
    """A provider authentication key Apple knows; its environment may be both (None)."""

    key_id: str
    team_id: str
    public_key: ec.EllipticCurvePublicKey
    topics: tuple[str, ...]
    environment: str | None = None
    environment_reason: EnvironmentReason = "BadEnvironmentKeyInToken"


class Providers:
    """All provider keys, the tokens verified with them, and the revoked certificates; one for all of Apple's hosts."""

    def __init__(self, keys: list[SigningKey]) -> None:
        self._keys = {key.key_id: key for key in keys}
        self._verified: dict[str, tuple[Jwt, SigningKey]] = {}
        self.revoked_certificates: set[int] = set()

    def add_key(self, key: SigningKey) -> None:
        """Let another provider key sign."""
        self._keys[key.key_id] = key

    def revoke_key(self, key_id: str) -> bool:
        """Stop accepting a key's tokens; false when there was no such key."""
        self._verified = {}
        return self._keys.pop(key_id, None) is not None

    def known(self, text: str) -> tuple[Jwt, SigningKey] | tuple[None, None]:
        """Verify a provider token once; later requests with the same one are looked up."""
        if known := self._verified.get(text):
            return known
        jwt = parse_jwt(text)
        key = self._keys.get(str(jwt.header.get("kid"))) if jwt else None
        if jwt is None or key is None or jwt.claims.get("iss") != key.team_id:
            return None, None
        if not isinstance(jwt.claims.get("iat"), int) or not es256_holds(jwt, key.public_key):
            return None, None
        if len(self._verified) > 1000:
            self._verified = {}
        self._verified[text] = jwt, key
        return jwt, key


class Asking(msgspec.Struct, kw_only=True):
    """A request to any of Apple's hosts on its way through the checks."""

    request: Request
    providers: Providers
    environment: str
    now: float
    topic: str
    key: SigningKey | None = None
    jwt: Jwt | None = None
    jwt_text: str = ""
    certificate: ClientCertificate | None = None

    def header(self, name: str) -> str | None:
        """Return the value of a header, None when it was not sent."""
        return self.request.headers.get(name)

    @property
    def topics(self) -> tuple[str, ...]:
        """The topics that the sender may send to."""
        if self.certificate is not None:
            return self.certificate.topics
        return self.key.topics if self.key is not None else ()


A_contra = TypeVar("A_contra", contravariant=True)
A = TypeVar("A", bound="Asking")


class IdentityCheck(msgspec.Struct, Generic[A_contra], frozen=True):
    """A row of Apple's table: when *holds* is false the request is refused with *status* and *reason*."""

    holds: Callable[[A_contra], bool]
    status: int
    reason: str
    strict: bool = False
    """Whether it is checked in strict mode only: Apple's text calls it wrong without naming this answer."""


def _has_provider_token(asking: Asking) -> bool:
    scheme, _, asking.jwt_text = (asking.header("authorization") or "").partition(" ")
    return scheme.lower() == "bearer" and bool(asking.jwt_text)


def _provider_token_is_signed(asking: Asking) -> bool:
    asking.jwt, asking.key = asking.providers.known(asking.jwt_text)
    return asking.jwt is not None and asking.key is not None


def _issued_at(asking: Asking) -> int:
    assert asking.jwt is not None
    return int(asking.jwt.claims["iat"])


def _same_team(asking: Asking) -> bool:
    session = asking.request.connection.session
    return session is None or asking.key is None or session.team_id == asking.key.team_id


def _same_key(asking: Asking) -> bool:
    session = asking.request.connection.session
    return session is None or asking.key is None or session.key_id == asking.key.key_id


def _not_refreshed_too_soon(asking: Asking) -> bool:
    session = asking.request.connection.session
    if session is None or session.token == asking.jwt_text:
        return True
    shown_s, issued_s = asking.now - session.since, _issued_at(asking) - session.issued_at
    return min(shown_s, issued_s) >= _MIN_TOKEN_AGE_S


def _wrong_environment(asking: Asking, reason: EnvironmentReason) -> bool:
    key = asking.key
    return key is not None and key.environment not in (None, asking.environment) and key.environment_reason == reason


def _certificate_is_apples(asking: Asking) -> bool:
    der = asking.request.connection.certificate
    asking.certificate = read_certificate(der) if der is not None else None
    return asking.certificate is not None and asking.certificate.serial not in asking.providers.revoked_certificates


def _certificate_of_environment(asking: Asking) -> bool:
    return asking.certificate is not None and asking.environment in asking.certificate.environments


BY_TOKEN: tuple[IdentityCheck[Asking], ...] = (
    IdentityCheck(_has_provider_token, 403, "MissingProviderToken"),
    IdentityCheck(_provider_token_is_signed, 403, "InvalidProviderToken"),
    IdentityCheck(lambda a: a.now - _HOUR_S <= _issued_at(a), 403, "ExpiredProviderToken"),
    IdentityCheck(lambda a: _issued_at(a) <= a.now + _HOUR_S, 403, "InvalidProviderToken"),
    IdentityCheck(_same_team, 403, "InvalidProviderToken"),
    IdentityCheck(_same_key, 403, "UnrelatedKeyIdInToken"),
    IdentityCheck(lambda a: not _wrong_environment(a, "BadEnvironmentKeyInToken"), 403, "BadEnvironmentKeyInToken"),
    IdentityCheck(lambda a: not _wrong_environment(a, "BadEnvironmentKeyIdInToken"), 403, "BadEnvironmentKeyIdInToken"),
    IdentityCheck(_not_refreshed_too_soon, 429, "TooManyProviderTokenUpdates"),
)
BY_CERTIFICATE: tuple[IdentityCheck[Asking], ...] = (
    IdentityCheck(_certificate_is_apples, 403, "BadCertificate"),
    IdentityCheck(_certificate_of_environment, 403, "BadCertificateEnvironment"),
)
"""With a certificate the `authorization` header is ignored."""


Table = tuple[IdentityCheck[A], ...]


def tables(line: Table[A], content: Table[A], *, strict: bool) -> tuple[Table[A], Table[A]]:
    """List a host's checks in order, for a sender with a provider token and for one with a certificate."""
    by_token: list[IdentityCheck[A]] = [*line, *BY_TOKEN, *content]
    by_certificate: list[IdentityCheck[A]] = [*line, *BY_CERTIFICATE, *content]
    return (
        tuple(check for check in by_token if strict or not check.strict),
        tuple(check for check in by_certificate if strict or not check.strict),
    )


def bind(asking: Asking) -> None:
    """Tie a connection to its provider and, now that it is known, open it up."""
    if asking.key is None:
        return
    connection, key = asking.request.connection, asking.key
    session = connection.session
    if session is None:
        connection.limit_streams(STREAMS)
    if session is None or session.token != asking.jwt_text:
        connection.session = ProviderSession(asking.jwt_text, key.key_id, key.team_id, _issued_at(asking), asking.now)


def refused(refusal: Refusal, request: Request, id_header: str, gone_at_ms: int | None = None) -> GatewayAnswer:
    """Refuse with Apple's JSON: a reason, and for 410 since when the token is dead, ms; echo a well-formed id."""
    body: dict[str, object] = {"reason": refusal.reason}
    if gone_at_ms is not None:
        body["timestamp"] = gone_at_ms
    headers = (("content-type", "application/json"), (id_header, echoed_id(request, id_header)))
    return GatewayAnswer(refusal.status, headers, msgspec.json.encode(body))


def echoed_id(request: Request, header: str) -> str:
    """Return the sender's id for the request, or a new one when it gave none that can be read."""
    sent = request.headers.get(header, "")
    return sent if CANONICAL_UUID.match(sent) else str(uuid.uuid4())
