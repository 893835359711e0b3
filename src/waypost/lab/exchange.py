"""One HTTP exchange as the gateways see it, whatever version of HTTP carried it."""

from collections import Counter
from collections.abc import Callable
from typing import Protocol

import msgspec

JSON_CONTENT = ("content-type", "application/json; charset=UTF-8")


class ProviderSession(msgspec.Struct):
    """The provider token an APNs connection is bound to by its first good request."""

    token: str
    key_id: str
    team_id: str
    issued_at: int
    since: float
    """The time when the token came first on this connection."""


class ClientConnection(msgspec.Struct, kw_only=True):
    """The facts known of one client connection."""

    number: int
    gateway: str
    protocol: str
    scheme: str = "https"
    certificate: bytes | None = None
    """The client's certificate, in DER."""
    opened_at: float
    closed_at: float | None = None
    requests: int = 0
    peak_streams: int = 0
    push_types: Counter[str] = msgspec.field(default_factory=Counter)
    violations: Counter[str] = msgspec.field(default_factory=Counter)
    """Breaches of HTTP/2 or of the gateway's connection rules, by name."""
    session: ProviderSession | None = None
    vapid: tuple[str, float] | None = None
    """The Web Push identity that was last taken, and since when."""
    errors: int = 0
    """The weight of answers that count against a scripted error budget."""
    limit_streams: Callable[[int], None] = lambda _: None


class Request(msgspec.Struct, kw_only=True):
    """A complete request. Header names are lower-case; pseudo-headers keep their colon."""

    method: str
    path: str
    headers: dict[str, str]
    repeated: tuple[str, ...] = ()
    """The names that came more than once (`headers` has the last value)."""
    body: bytes
    connection: ClientConnection
    given_up: bool = False
    """Whether its stream was reset before it was answered."""

    @property
    def is_awaited(self) -> bool:
        """Whether anybody still waits for the answer."""
        return not self.given_up and self.connection.closed_at is None


class GatewayAnswer(msgspec.Struct, frozen=True):
    """An answer to a request: a status, headers beside `:status`, a body."""

    status: int
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""


class Verdict(msgspec.Struct, kw_only=True):
    """A gateway's judgement of one request, with what the record needs."""

    answer: GatewayAnswer
    accepted: bool = False
    reason: str = ""
    """The gateway's own word for a refusal, empty when accepted."""
    token: str = ""
    notification_id: str = ""
    push_type: str = ""
    plaintext: bytes | None = None
    """The decrypted Web Push message."""
    keep: bool = True
    """Whether it is kept: False for exchanges that deliver nothing, such as a token request."""


class Refusal(msgspec.Struct, frozen=True):
    """The reason why a request is refused, before it is put into the gateway's own error body."""

    status: int
    reason: str
    detail: str = ""


class Gateway(Protocol):
    """A simulated provider: it judges requests, and can phrase an ordered failure as its own."""

    name: str

    def token_of(self, request: Request) -> str:
        """Name the device a request is for, without judging it; empty when it cannot be told."""

    def judge(self, request: Request) -> Verdict:
        """Accept or refuse *request* as the real service would."""

    def refuse(self, refusal: Refusal, request: Request, *, gone_at_ms: int | None = None) -> GatewayAnswer:
        """Phrase *refusal* of *request* in this gateway's error format; *gone_at_ms* is when the token died."""
