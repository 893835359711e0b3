"""Google's token endpoint for service accounts: a signed assertion in, a short-lived bearer token out."""

import secrets
import urllib.parse
from collections.abc import Callable

import msgspec
from cryptography.hazmat.primitives.asymmetric import rsa

from waypost.lab.exchange import JSON_CONTENT, GatewayAnswer, Refusal, Request, Verdict
from waypost.lab.jose import Jwt, parse_jwt, rs256_holds

GRANT_TYPE = "urn:ietf:params:oauth:grant-type:jwt-bearer"
SCOPES = frozenset(
    ("https://www.googleapis.com/auth/firebase.messaging", "https://www.googleapis.com/auth/cloud-platform")
)
TOKEN_PATH = "/token"
_HOUR_S, _SKEW_S = 3600, 60
_SHORT_LIVED = (
    "Invalid JWT: Token must be a short-lived token (60 minutes) and in a reasonable timeframe. "
    "GrantCheck your iat and exp values in the JWT claim."
)


class KnownServiceAccount(msgspec.Struct, frozen=True):
    """An account that may ask for tokens."""

    email: str
    public_key: rsa.RSAPublicKey


class GrantRequest(msgspec.Struct):
    """A token request on its way through the checks."""

    request: Request
    form: dict[str, str]
    endpoint: "OAuthGateway"
    now: float
    jwt: Jwt | None = None

    def claim(self, name: str) -> object:
        """Return a claim of the assertion, None when absent."""
        return self.jwt.claims.get(name) if self.jwt else None


class GrantCheck(msgspec.Struct, frozen=True):
    """A row of checks: when *holds* is false the answer is *status* with OAuth *error* and *description*."""

    holds: Callable[[GrantRequest], bool]
    status: int
    error: str
    description: str


def _assertion_parses(grant: GrantRequest) -> bool:
    grant.jwt = parse_jwt(grant.form.get("assertion", ""))
    return grant.jwt is not None


def _times_are_near(grant: GrantRequest) -> bool:
    issued, expires = grant.claim("iat"), grant.claim("exp")
    if not isinstance(issued, int) or not isinstance(expires, int):
        return False
    return issued <= grant.now + _SKEW_S and grant.now - _SKEW_S < expires <= issued + _HOUR_S


CHECKS = (
    GrantCheck(lambda g: g.request.path.partition("?")[0] == TOKEN_PATH, 404, "not_found", "Not Found"),
    GrantCheck(lambda g: g.request.method == "POST", 405, "invalid_request", "Method must be POST."),
    GrantCheck(
        lambda g: g.request.headers.get("content-type", "").startswith("application/x-www-form-urlencoded"),
        400, "invalid_request", "Required parameter is missing: grant_type",
    ),
    GrantCheck(lambda g: g.form.get("grant_type") == GRANT_TYPE, 400, "unsupported_grant_type", "Invalid grant_type"),
    GrantCheck(_assertion_parses, 400, "invalid_grant", "Bad Request"),
    GrantCheck(
        lambda g: g.claim("iss") == g.endpoint.account.email,
        400, "invalid_grant", "Invalid grant: account not found",
    ),
    GrantCheck(
        lambda g: g.jwt is not None and rs256_holds(g.jwt, g.endpoint.account.public_key),
        400, "invalid_grant", "Invalid JWT Signature.",
    ),
    GrantCheck(lambda g: g.claim("aud") == g.endpoint.url, 400, "invalid_grant", "Invalid JWT: Failed audience check."),
    GrantCheck(_times_are_near, 400, "invalid_grant", _SHORT_LIVED),
    GrantCheck(lambda g: bool(g.claim("scope")), 400, "invalid_scope", "Empty or missing scope not allowed."),
    GrantCheck(
        lambda g: bool(SCOPES & set(str(g.claim("scope")).split())),
        400, "invalid_scope", "Invalid OAuth scope or ID token audience provided.",
    ),
)  # fmt: skip


class OAuthGateway:
    """The gateway oauth2.googleapis.com."""

    name = "oauth"
    account: KnownServiceAccount
    url: str

    def __init__(self, account: KnownServiceAccount, *, lifetime_s: int, clock: Callable[[], float]) -> None:
        self.account, self.url = account, ""
        self._lifetime_s, self._clock = lifetime_s, clock
        self._expiries: dict[str, float] = {}

    def valid(self, access_token: str) -> bool:
        """Tell whether *access_token* was issued here and has not expired."""
        return self._expiries.get(access_token, 0) > self._clock()

    def revoke_all(self) -> int:
        """Expire every access token at once, and return how many there were."""
        count = len(self._expiries)
        self._expiries = {}
        return count

    def token_of(self, request: Request) -> str:
        """Return no device's token: a token request is for none."""
        return ""

    def judge(self, request: Request) -> Verdict:
        """Judge the request by the table of checks and issue a token."""
        form = dict(urllib.parse.parse_qsl(request.body.decode("latin-1")))
        grant = GrantRequest(request, form, self, self._clock())
        for check in CHECKS:
            if not check.holds(grant):
                answer = self.refuse(Refusal(check.status, check.error, check.description), request)
                return Verdict(answer=answer, reason=check.error)
        return Verdict(answer=GatewayAnswer(200, (JSON_CONTENT,), msgspec.json.encode(self.issue())), accepted=True)

    def issue(self) -> dict[str, object]:
        """Make an access token, and describe it as Google does."""
        now = self._clock()
        token = "ya29.c." + secrets.token_urlsafe(96)
        self._expiries = {known: expiry for known, expiry in self._expiries.items() if expiry > now}
        self._expiries[token] = now + self._lifetime_s
        return {"access_token": token, "expires_in": self._lifetime_s, "token_type": "Bearer"}

    def refuse(self, refusal: Refusal, request: Request, *, gone_at_ms: int | None = None) -> GatewayAnswer:
        """Refuse as RFC 6749 section 5.2 says, with Google's texts."""
        body = {"error": refusal.reason or "internal_failure", "error_description": refusal.detail}
        return GatewayAnswer(refusal.status, (JSON_CONTENT,), msgspec.json.encode(body))
