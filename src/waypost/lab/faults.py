"""Scripted faults: what a rule may say, and which rule a request meets. The table is in docs/lab.md."""

import random
import zlib
from pathlib import Path
from typing import Any, Literal

import msgspec
import yaml

from waypost.lab.counterparts import gateway_names


class _Part(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A piece of a rule; unknown keys are refused so that a misspelt fault is never silently no fault."""


class Match(_Part, frozen=True):
    """The condition on requests that a rule meets; everything named must hold."""

    token: str | None = None
    token_prefix: str | None = None
    share: float | None = None
    """The share (0..1) of all tokens that it meets, always the same ones."""
    probability: float | None = None
    """The probability with which it meets each request (0..1)."""
    after: int = 0
    """Matching requests that pass before it begins."""
    times: int | None = None
    """Matching requests that it meets at most; absent: all."""


class AnswerFault(_Part, frozen=True):
    """An answer of *status* in the gateway's own error format, or with a raw *body*."""

    status: int
    reason: str = ""
    """APNs `reason`, FCM and OAuth error code, Web Push error text."""
    retry_after: int | None = None
    """Seconds, sent as `Retry-After`."""
    retry_after_date_s: int | None = None
    """Seconds from now, sent as the HTTP date of `Retry-After`."""
    headers: dict[str, str] = {}
    body: str | None = None
    """The body, sent as it is, for example an HTML 502."""
    fields: dict[str, Any] = {}
    """The fields laid over the JSON of the answer, object by object: odd values where a provider writes others."""
    accept: bool = False
    """Whether the request is judged and recorded first, as by a service that fails after taking the message."""


class GoneFault(_Part, frozen=True):
    """The answer that the token is dead: APNs 410 with a timestamp, FCM 404 UNREGISTERED, Web Push 410."""

    at_ms: int | None = None
    """The time of death, UNIX milliseconds; absent: now."""
    reason: Literal["Unregistered", "ExpiredToken"] = "Unregistered"
    status: Literal[404, 410] = 410
    """The status: Web Push services use either."""


class Goaway(_Part, frozen=True):
    """A GOAWAY: answer what its last stream id covers, drop the rest unprocessed, close."""

    code: int = 0
    last_stream: Literal["all", "none", "half"] = "all"
    """The part of what has arrived and is not yet processed that the last stream id covers."""
    reason: str | None = None
    """The debug data: JSON with this `reason`."""
    hold_ms: int = 0
    """Milliseconds for which requests are gathered unprocessed before the GOAWAY goes."""
    graceful: bool = False
    """Whether last stream 2^31-1 is announced first, then, after `hold_ms`, the real one (RFC 9113 6.8)."""


class Rst(_Part, frozen=True):
    """A reset of the stream."""

    code: int = 7
    accept: bool = False


class BlackHole(_Part, frozen=True):
    """Silence: never answer; scope `streams`: nor anything else on this connection, which lives on and answers
    PING; scope `connection`: stop reading, too.
    """

    scope: Literal["request", "streams", "connection"] = "request"
    accept: bool = False


class SettingsChange(_Part, frozen=True):
    """A SETTINGS frame in the middle of the connection, then the usual answer."""

    max_concurrent_streams: int | None = None
    initial_window_size: int | None = None
    max_frame_size: int | None = None
    header_table_size: int | None = None
    max_header_list_size: int | None = None


class SlowReader(_Part, frozen=True):
    """A pause in which the connection is not read, then the usual answer."""

    pause_ms: int


class ErrorBudget(_Part, frozen=True):
    """A budget of a connection's 4xx answers, all but 410, and its punishment for too many, as Apple describes it."""

    lower_after: int | None = None
    """The number of errors at which SETTINGS lower the stream limit; the next accepted request lifts it again."""
    lower_to: int = 1
    lift_to: int = 1000
    drop_after: int | None = None
    """The number of errors at which the connection is closed behind its answer."""
    bad_device_token_counts: int = 2
    """The weight of a `BadDeviceToken`, which counts for more than other errors."""


class PaceFault(_Part, frozen=True):
    """A pace of so many requests a second, one queue for the whole gateway; the others wait, however long."""

    per_s: float
    queue: int = 10_000
    """The most requests that may wait."""
    when_full: AnswerFault | None = None
    """The answer to a request that finds the queue full; absent: 503 in the gateway's own words."""

    def __post_init__(self) -> None:
        if self.per_s <= 0 or self.queue < 1:
            raise ValueError("a pace needs per_s above 0 and a queue of at least 1")


class Do(_Part, frozen=True):
    """An action, exactly one; if it does not decide, the next rule acts as well."""

    latency_ms: int | None = None
    answer: AnswerFault | None = None
    gone: GoneFault | None = None
    goaway: Goaway | None = None
    rst: Rst | None = None
    black_hole: BlackHole | None = None
    drop: Literal[True] | None = None
    accept_then_drop: Literal[True] | None = None
    settings: SettingsChange | None = None
    slow_reader: SlowReader | None = None
    error_budget: ErrorBudget | None = None
    pace: PaceFault | None = None
    refuse_connections: Literal[True] | None = None
    tls_fail: Literal[True] | None = None

    def __post_init__(self) -> None:
        if sum(getattr(self, name) is not None for name in self.__struct_fields__) != 1:
            raise ValueError(f"a rule does exactly one of {', '.join(self.__struct_fields__)}")

    @property
    def decides(self) -> bool:
        """Whether it settles what becomes of the request, so that no further rule is asked."""
        return not (self.latency_ms or self.settings or self.slow_reader or self.error_budget or self.pace)


class FaultRule(_Part, frozen=True):
    """A line of the script. A rule without `where` holds for every gateway."""

    do: Do
    where: str | None = None
    match: Match = Match()

    def __post_init__(self) -> None:
        if self.where is not None and self.where not in gateway_names():
            raise ValueError(f"where must be one of {', '.join(gateway_names())}")
        if (self.do.refuse_connections or self.do.tls_fail) and (self.match.token or self.match.share is not None):
            raise ValueError("a connection has no token yet: match it by probability, after or times")
        if self.do.refuse_connections and self.match != Match():
            raise ValueError("refuse_connections closes the port and so meets every connection: it takes no match")


class _Armed(msgspec.Struct):
    rule: FaultRule
    seen: int = 0
    met: int = 0


class Faults:
    """The script in force; the first matching rule that acts decides, latencies add up."""

    def __init__(self) -> None:
        self._armed: list[_Armed] = []
        self._requests: dict[str, list[_Armed]] = {}
        self._chance = random.Random(20)  # noqa: S311 - a repeatable script, not a secret

    @property
    def rules(self) -> list[FaultRule]:
        """The rules as they were given."""
        return [armed.rule for armed in self._armed]

    def met(self) -> list[int]:
        """Count how often each rule has acted."""
        return [armed.met for armed in self._armed]

    def replace(self, rules: list[FaultRule]) -> None:
        """Put *rules* in force, with all their counts at zero."""
        self._armed = [_Armed(rule) for rule in rules]
        self._requests = {
            name: [
                armed
                for armed in self._armed
                if armed.rule.where in (None, name) and not (armed.rule.do.refuse_connections or armed.rule.do.tls_fail)
            ]
            for name in gateway_names()
        }

    def meets_any(self, gateway: str) -> bool:
        """Tell whether any rule could meet a request to *gateway*: the cheap question that each request asks."""
        return bool(self._requests.get(gateway))

    def choose(self, gateway: str, token: str) -> list[Do]:
        """Choose the actions one request meets, in order; only the last is final, those before it let it pass on."""
        chosen: list[Do] = []
        for armed in self._requests.get(gateway, ()):
            if self._meets(armed, token):
                chosen.append(armed.rule.do)
                if armed.rule.do.decides:
                    break
        return chosen

    def pace(self, gateway: str) -> PaceFault | None:
        """Return the pace at which *gateway* works requests off, if a rule sets one."""
        return next((a.rule.do.pace for a in self._requests.get(gateway, ()) if a.rule.do.pace), None)

    def refuses_connections(self, gateway: str) -> bool:
        """Tell whether *gateway*'s port is to be closed."""
        return any(a.rule.do.refuse_connections and a.rule.where in (None, gateway) for a in self._armed)

    def fails_tls(self, gateway: str) -> bool:
        """Tell whether the handshake now beginning is to fail."""
        return any(
            armed.rule.do.tls_fail and armed.rule.where in (None, gateway) and self._meets(armed, "")
            for armed in self._armed
        )

    def _meets(self, armed: _Armed, token: str) -> bool:
        match = armed.rule.match
        if match.times is not None and armed.met >= match.times:
            return False
        if match.token is not None and token != match.token:
            return False
        if match.token_prefix is not None and not token.startswith(match.token_prefix):
            return False
        if match.share is not None and zlib.crc32(token.encode()) >= match.share * 2**32:
            return False
        if match.probability is not None and self._chance.random() >= match.probability:
            return False
        armed.seen += 1
        if armed.seen <= match.after:
            return False
        armed.met += 1
        return True


def parse_rules(document: Any) -> list[FaultRule]:
    """Check a decoded JSON or YAML list. Raises ValueError (msgspec's names the path) for what is wrong."""
    rules = msgspec.convert(document or [], type=list[FaultRule])
    paced = [name for rule in rules if rule.do.pace for name in ([rule.where] if rule.where else gateway_names())]
    if len(paced) > len(set(paced)):
        raise ValueError("a gateway has one queue, and so one pace")
    return rules


def read_rules(path: Path) -> list[FaultRule]:
    """Read a YAML file of rules."""
    return parse_rules(yaml.safe_load(path.read_text(encoding="utf-8")))
