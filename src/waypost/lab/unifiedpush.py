"""A push server as ntfy is one: topics are paths, a message is answered 200 with JSON; every message is decrypted."""

import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import msgspec

from waypost.lab import ece
from waypost.lab.counterparts import Account, Counterpart, GatewayContext, Made
from waypost.lab.credentials import CA
from waypost.lab.exchange import JSON_CONTENT, GatewayAnswer, Refusal, Request, Verdict
from waypost.lab.records import notification_id_in
from waypost.lab.subscriptions import Subscription, Subscriptions, described, private_key
from waypost.lab.vapid import read_vapid

_MAX_BODY_BYTES = 4096
_TOPIC_PREFIX = "/up"
_DISCOVERY = msgspec.json.encode({"unifiedpush": {"version": 1}})
_NTFY_CODES = {400: 40001, 403: 40301, 404: 40401, 413: 41301, 429: 42901, 500: 50001, 507: 50701}


class _Wanted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The kind of device that is asked for."""

    encrypted: bool = True
    """Whether it has keys; a device from before the keys gets messages as they were posted."""


class UnifiedPushRequest(msgspec.Struct):
    """A request on its way through the checks."""

    request: Request
    gateway: "UnifiedPushGateway"
    now: float
    device: Subscription | None
    plaintext: bytes | None = None

    @property
    def encoding(self) -> str | None:
        """The encoding that the headers name."""
        return self.request.headers.get("content-encoding")

    @property
    def is_open(self) -> bool:
        """Whether its device has no keys."""
        return self.device is not None and self.device.service == "open"


class UnifiedPushCheck(msgspec.Struct, frozen=True):
    """A row of checks: when *holds* is false the message is refused."""

    holds: Callable[[UnifiedPushRequest], bool]
    status: int
    reason: str
    strict: bool = False


def _is_for_unifiedpush(message: UnifiedPushRequest) -> bool:
    """Check for a sign that it is for UnifiedPush: without one ntfy would show the bytes as text."""
    query = parse_qs(urlsplit(message.request.path).query)
    return query.get("up") == ["1"] or message.encoding == "aes128gcm"


def _vapid_holds(message: UnifiedPushRequest) -> bool:
    header = message.request.headers.get("authorization")
    if header is None:
        return True
    vapid = read_vapid(header)
    origin = f"{message.request.connection.scheme}://{message.request.headers.get(':authority')}"
    return vapid is not None and vapid.audience == origin and message.now < vapid.expires_at


def _suits_the_keys(message: UnifiedPushRequest) -> bool:
    return message.encoding == (None if message.is_open else "aes128gcm")


def _decrypts(message: UnifiedPushRequest) -> bool:
    device, body = message.device, message.request.body
    if device is None or message.is_open:
        message.plaintext = body
        return True
    opened = ece.open_message(body, private_key(device), device.public_key, device.auth)
    if isinstance(opened, ece.Undecryptable):
        return False
    message.plaintext = opened.plaintext
    return True


CHECKS = (
    UnifiedPushCheck(lambda m: m.request.method == "POST", 405, "method not allowed"),
    UnifiedPushCheck(lambda m: m.device is not None and m.device.id not in m.gateway.deaths, 404, "page not found"),
    UnifiedPushCheck(_is_for_unifiedpush, 400, "not a UnifiedPush message", strict=True),
    UnifiedPushCheck(_vapid_holds, 403, "forbidden"),
    UnifiedPushCheck(lambda m: (m.request.headers.get("ttl") or "").isdecimal(), 400, "TTL missing", strict=True),
    UnifiedPushCheck(lambda m: len(m.request.body) > 0, 400, "message is empty"),
    UnifiedPushCheck(lambda m: len(m.request.body) <= _MAX_BODY_BYTES, 413, "message too large"),
    UnifiedPushCheck(_suits_the_keys, 400, "the device cannot read this encoding", strict=True),
    UnifiedPushCheck(_decrypts, 400, "the device cannot decrypt this", strict=True),
)
"""A real server cannot decrypt; the app drops what it cannot read. Here that is refused, to be seen."""


class UnifiedPushGateway:
    """A push server and the devices of its users."""

    name = "unifiedpush"

    def __init__(self, place: GatewayContext) -> None:
        self.origin = ""
        self.deaths: dict[str, int] = place.deaths
        self._devices = Subscriptions(place.directory / "unifiedpush.ndjson")
        self._checks = tuple(check for check in CHECKS if place.strict or not check.strict)
        self._clock = place.clock

    def make(self, wanted: dict[str, Any]) -> Made:
        """Make a device with keys, or with `{"encrypted": false}` one without."""
        encrypted = msgspec.convert(wanted, _Wanted).encrypted
        (device,) = self._devices.make(1, service="encrypted" if encrypted else "open", vapid_key=None)
        shown = described(device, f"{self.origin}{_TOPIC_PREFIX}{device.id}?up=1")
        return Made(device.id, shown if encrypted else shown | {"keys": None})

    def token_of(self, request: Request) -> str:
        """Return the topic, without its prefix."""
        return urlsplit(request.path).path.removeprefix(_TOPIC_PREFIX)

    def judge(self, request: Request) -> Verdict:
        """Judge the message by the table of checks; a GET discovers."""
        token = self.token_of(request)
        device = self._devices.get(token)
        if request.method == "GET" and device is not None:
            return Verdict(answer=GatewayAnswer(200, (JSON_CONTENT,), _DISCOVERY), keep=False)
        message = UnifiedPushRequest(request, self, self._clock(), device)
        for check in self._checks:
            if not check.holds(message):
                answer = self.refuse(Refusal(check.status, check.reason), request)
                return _verdict(message, token, answer, reason=check.reason)
        return _verdict(message, token, _taken(token, int(message.now)), accepted=True)

    def refuse(self, refusal: Refusal, _request: Request, *, gone_at_ms: int | None = None) -> GatewayAnswer:
        """Refuse as ntfy writes it; one that does not know a device says 404, whenever it died."""
        status = refusal.status if gone_at_ms is None else 404
        said = {"code": _NTFY_CODES.get(status, status * 100), "http": status, "error": refusal.reason}
        return GatewayAnswer(status, (JSON_CONTENT,), msgspec.json.encode(said))


def _taken(token: str, now_s: int) -> GatewayAnswer:
    said = {"id": secrets.token_urlsafe(9), "time": now_s, "event": "message", "topic": f"up{token}"}
    return GatewayAnswer(200, (JSON_CONTENT,), msgspec.json.encode(said))


def _verdict(
    message: UnifiedPushRequest, token: str, answer: GatewayAnswer, *, accepted: bool = False, reason: str = ""
) -> Verdict:
    return Verdict(
        answer=answer, accepted=accepted, reason=reason, token=token, plaintext=message.plaintext,
        notification_id=notification_id_in(message.plaintext),
        push_type=message.request.headers.get("urgency") or "normal",
    )  # fmt: skip


def _account(directory: Path, url: str) -> dict[str, Any]:
    return {"allow_endpoints": [url], "ca_file": str(directory / CA)}


COUNTERPART = Counterpart(
    UnifiedPushGateway.name, UnifiedPushGateway, account=Account("unifiedpush", "unifiedpush", _account)
)
