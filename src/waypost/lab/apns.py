"""Apple's provider API as Apple documents it: what is checked, in which order, and how it is answered."""

import re
import uuid
from collections.abc import Callable
from typing import Any

import msgspec
from cryptography.hazmat.primitives.asymmetric import ec

from waypost.lab import apns_payload
from waypost.lab.exchange import Answer, ProviderSession, Refusal, Request, Verdict
from waypost.lab.jose import Jwt, es256_holds, parse_jwt
from waypost.lab.tokens import Tokens

STREAMS_BEFORE_TOKEN, STREAMS = 1, 1000
_HOUR_S, _MIN_TOKEN_AGE_S = 3600, 1200
_FAR_FUTURE_S = 10 * 365 * 86400
_DEVICE_PATH = "/3/device/"
_CANONICAL_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\Z")
_TOPIC_FORM = re.compile(r"[A-Za-z0-9.-]{1,255}\Z")

TOPIC_SUFFIXES = {
    "alert": "",
    "background": "",
    "location": ".location-query",
    "voip": ".voip",
    "complication": ".complication",
    "fileprovider": ".pushkit.fileprovider",
    "liveactivity": ".push-type.liveactivity",
    "pushtotalk": ".voip-ptt",
    "widgets": ".push-type.widgets",
    "controls": ".push-type.controls",
    "mdm": "",
}


class SigningKey(msgspec.Struct, frozen=True):
    """A provider authentication key Apple knows; its environment may be both (None)."""

    key_id: str
    team_id: str
    public_key: ec.EllipticCurvePublicKey
    topics: tuple[str, ...]
    environment: str | None = None


class Push(msgspec.Struct):
    """One request on its way through the checks."""

    request: Request
    gateway: "ApnsGateway"
    now: float
    token: str
    push_type: str
    topic: str
    payload: Any = None
    key: SigningKey | None = None
    jwt: Jwt | None = None
    jwt_text: str = ""

    def header(self, name: str) -> str | None:
        """The value of a header, None when it was not sent."""
        return self.request.headers.get(name)


class Check(msgspec.Struct, frozen=True):
    """One row of Apple's table: when *holds* is false the push is refused with *status* and *reason*."""

    holds: Callable[[Push], bool]
    status: int
    reason: str
    strict: bool = False
    """Apple's text calls it wrong without naming this answer."""


def _has_provider_token(push: Push) -> bool:
    scheme, _, push.jwt_text = (push.header("authorization") or "").partition(" ")
    return scheme.lower() == "bearer" and bool(push.jwt_text)


def _provider_token_is_signed(push: Push) -> bool:
    push.jwt, push.key = push.gateway.known_provider(push.jwt_text)
    return push.jwt is not None and push.key is not None


def _issued_at(push: Push) -> int:
    assert push.jwt is not None
    return int(push.jwt.claims["iat"])


def _same_team(push: Push) -> bool:
    session = push.request.connection.session
    return session is None or push.key is None or session.team_id == push.key.team_id


def _same_key(push: Push) -> bool:
    session = push.request.connection.session
    return session is None or push.key is None or session.key_id == push.key.key_id


def _not_refreshed_too_soon(push: Push) -> bool:
    session = push.request.connection.session
    if session is None or session.token == push.jwt_text:
        return True
    return _issued_at(push) - session.issued_at >= _MIN_TOKEN_AGE_S


def _right_environment(push: Push) -> bool:
    return push.key is None or push.key.environment in (None, push.gateway.environment)


def _id_is_canonical(push: Push) -> bool:
    return (value := push.header("apns-id")) is None or _CANONICAL_UUID.match(value) is not None


def _topic_allowed(push: Push) -> bool:
    assert push.key is not None
    base = push.topic.removesuffix(TOPIC_SUFFIXES[push.push_type])
    return push.push_type == "mdm" or base in push.key.topics


def _topic_fits_type(push: Push) -> bool:
    suffix = TOPIC_SUFFIXES[push.push_type]
    if suffix:
        return push.topic.endswith(suffix)
    return not any(other and push.topic.endswith(other) for other in TOPIC_SUFFIXES.values())


def _expiration_is_epoch(push: Push) -> bool:
    return (value := push.header("apns-expiration")) is None or value.isdecimal()


def _expiration_is_seconds(push: Push) -> bool:
    return (value := push.header("apns-expiration")) is None or int(value) < push.now + _FAR_FUTURE_S


def _background_is_priority_5(push: Push) -> bool:
    return push.push_type != "background" or push.header("apns-priority") == "5"


def _payload_is_json(push: Push) -> bool:
    try:
        push.payload = msgspec.json.decode(push.request.body)
    except msgspec.DecodeError:
        return False
    return isinstance(push.payload, dict)


def _token_of_environment(push: Push) -> bool:
    device = push.gateway.tokens.devices.get(push.token)
    return device is None or device.environment in (None, push.gateway.environment)


def _token_of_topic(push: Push) -> bool:
    device = push.gateway.tokens.devices.get(push.token)
    return device is None or device.topic in (None, push.topic)


CHECKS = (
    Check(lambda p: not p.request.repeated, 400, "DuplicateHeaders"),
    Check(lambda p: p.request.path.startswith(_DEVICE_PATH), 404, "BadPath"),
    Check(lambda p: p.request.method == "POST", 405, "MethodNotAllowed"),
    Check(lambda p: bool(p.token), 400, "MissingDeviceToken"),
    Check(_has_provider_token, 403, "MissingProviderToken"),
    Check(_provider_token_is_signed, 403, "InvalidProviderToken"),
    Check(lambda p: p.now - _HOUR_S <= _issued_at(p), 403, "ExpiredProviderToken"),
    Check(lambda p: _issued_at(p) <= p.now + _HOUR_S, 403, "InvalidProviderToken"),
    Check(_same_team, 403, "InvalidProviderToken"),
    Check(_same_key, 403, "UnrelatedKeyIdInToken"),
    Check(_right_environment, 403, "BadEnvironmentKeyInToken"),
    Check(_not_refreshed_too_soon, 429, "TooManyProviderTokenUpdates"),
    Check(_id_is_canonical, 400, "BadMessageId"),
    Check(lambda p: bool(p.topic), 400, "MissingTopic"),
    Check(lambda p: bool(_TOPIC_FORM.match(p.topic)), 400, "BadTopic"),
    Check(lambda p: p.header("apns-push-type") is not None, 400, "InvalidPushType", strict=True),
    Check(lambda p: p.push_type in TOPIC_SUFFIXES, 400, "InvalidPushType"),
    Check(_topic_fits_type, 400, "InvalidPushType"),
    Check(_topic_allowed, 400, "TopicDisallowed"),
    Check(lambda p: len((p.header("apns-collapse-id") or "").encode("latin-1")) <= 64, 400, "BadCollapseId"),
    Check(_expiration_is_epoch, 400, "BadExpirationDate"),
    Check(_expiration_is_seconds, 400, "BadExpirationDate", strict=True),
    Check(lambda p: p.header("apns-priority") in (None, "1", "5", "10"), 400, "BadPriority"),
    Check(_background_is_priority_5, 400, "BadPriority"),
    Check(lambda p: bool(p.request.body), 400, "PayloadEmpty"),
    Check(lambda p: len(p.request.body) <= (5120 if p.push_type == "voip" else 4096), 413, "PayloadTooLarge"),
    Check(lambda p: p.header("content-encoding") is None, 400, "BadRequestPayload", strict=True),
    Check(_payload_is_json, 400, "BadRequestPayload", strict=True),
    Check(lambda p: apns_payload.aps_is_sound(p.payload, p.push_type), 400, "BadRequestPayload", strict=True),
    Check(lambda p: apns_payload.fits_type(p.payload, p.push_type), 400, "InvalidPushType", strict=True),
    Check(lambda p: p.gateway.tokens.good("ios", p.token), 400, "BadDeviceToken"),
    Check(_token_of_environment, 400, "BadDeviceToken"),
    Check(_token_of_topic, 400, "DeviceTokenNotForTopic"),
    Check(lambda p: p.token not in p.gateway.tokens.deaths, 410, "Unregistered"),
)  # fmt: skip
"""Apple does not document the order of its checks; this one asks who before what, and what before to whom."""


class ApnsGateway:
    """Apple."""

    name = "apns"
    tokens: Tokens
    environment: str

    def __init__(
        self, keys: list[SigningKey], tokens: Tokens, *, environment: str, strict: bool, clock: Callable[[], float]
    ) -> None:
        self.tokens, self.environment = tokens, environment
        self._keys = {key.key_id: key for key in keys}
        self._checks = tuple(check for check in CHECKS if strict or not check.strict)
        self._clock = clock
        self._verified: dict[str, tuple[Jwt, SigningKey]] = {}

    def add_key(self, key: SigningKey) -> None:
        """Let another provider key sign."""
        self._keys[key.key_id] = key

    def revoke_key(self, key_id: str) -> bool:
        """Stop accepting a key's tokens; false when there was no such key."""
        self._verified = {}
        return self._keys.pop(key_id, None) is not None

    def token_of(self, request: Request) -> str:
        """The last part of the path."""
        return request.path.removeprefix(_DEVICE_PATH)

    def known_provider(self, text: str) -> tuple[Jwt, SigningKey] | tuple[None, None]:
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

    def judge(self, request: Request) -> Verdict:
        """Run the table."""
        headers = request.headers
        push = Push(
            request, self, self._clock(), self.token_of(request),
            headers.get("apns-push-type", "alert"), headers.get("apns-topic", ""),
        )  # fmt: skip
        for check in self._checks:
            if not check.holds(push):
                return self._refused(push, check)
        self._bind(push)
        answer = Answer(200, self._ids(request))
        return Verdict(
            answer=answer, accepted=True, token=push.token, push_type=push.push_type,
            notification_id=apns_payload.notification_id(push.payload),
        )  # fmt: skip

    def refuse(self, refusal: Refusal, *, gone_at_ms: int | None = None) -> Answer:
        """Apple's JSON: a reason, and for 410 the milliseconds since which the token is dead."""
        body: dict[str, object] = {"reason": refusal.reason}
        if gone_at_ms is not None:
            body["timestamp"] = gone_at_ms
        headers = (("content-type", "application/json"), ("apns-id", str(uuid.uuid4())))
        return Answer(refusal.status, headers, msgspec.json.encode(body))

    def _bind(self, push: Push) -> None:
        """Tie the connection to its provider and, now that it is known, open it up."""
        connection = push.request.connection
        assert push.key is not None
        session = connection.session
        if session is None:
            connection.limit_streams(STREAMS)
        if session is None or session.token != push.jwt_text:
            connection.session = ProviderSession(push.jwt_text, push.key.key_id, push.key.team_id, _issued_at(push))

    def _ids(self, request: Request) -> tuple[tuple[str, str], ...]:
        ids = (("apns-id", request.headers.get("apns-id") or str(uuid.uuid4())),)
        if self.environment == "sandbox":
            return (*ids, ("apns-unique-id", str(uuid.uuid4())))
        return ids

    def _refused(self, push: Push, check: Check) -> Verdict:
        gone_at_ms = self.tokens.deaths.get(push.token) if check.status == 410 else None
        answer = self.refuse(Refusal(check.status, check.reason), gone_at_ms=gone_at_ms)
        sent_id = push.request.headers.get("apns-id", "")
        if _CANONICAL_UUID.match(sent_id):
            answer = Answer(answer.status, (answer.headers[0], ("apns-id", sent_id)), answer.body)
        return Verdict(
            answer=answer, reason=check.reason, token=push.token, push_type=push.push_type,
            notification_id=apns_payload.notification_id(push.payload),
        )  # fmt: skip
