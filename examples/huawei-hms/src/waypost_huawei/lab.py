"""Huawei Push Kit as the lab plays it: strict on requests, tokens that expire, and answers as Huawei writes them.

Source: Huawei Push Kit, "Sending messages" (REST, v1), and "OAuth 2.0 client credentials". Both addresses are one here.
"""

from __future__ import annotations

import hmac
import re
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import msgspec
from waypost.lab.counterparts import Account, Counterpart, GatewayContext, Made
from waypost.lab.credentials import CA
from waypost.lab.exchange import JSON_CONTENT, GatewayAnswer, Refusal, Request, Verdict
from waypost.lab.records import notification_id_in

from waypost_huawei.settings import CHANNEL

APP_ID, SECRET_FILE = "100000001", "huawei-secret"
TOKEN_PATH, SEND_PATH = "/oauth2/v3/token", f"/v1/{APP_ID}/messages:send"
LIFETIME_S = 3600
_TOKENS = range(1, 1001)
_LIMIT_BYTES = 4096
_TTL = re.compile(r"(\d{1,7})s")


class HuaweiRequest(msgspec.Struct):
    """A message on its way through the checks."""

    request: Request
    gateway: HuaweiGateway
    body: dict[str, Any]

    @property
    def message(self) -> dict[str, Any]:
        """The field ``message``."""
        found = self.body.get("message")
        return found if isinstance(found, dict) else {}

    @property
    def tokens(self) -> list[Any]:
        """The recipients."""
        found = self.message.get("token")
        return found if isinstance(found, list) else []

    @property
    def android(self) -> dict[str, Any]:
        """The part that is for Android alone."""
        found = self.message.get("android", {})
        return found if isinstance(found, dict) else {}

    @property
    def access_token(self) -> str:
        """The access token, without its scheme."""
        return (self.request.headers.get("authorization") or "").removeprefix("Bearer ")


class HuaweiCheck(msgspec.Struct, frozen=True):
    """A row of checks: when *holds* is false the message is refused with *code*."""

    holds: Callable[[HuaweiRequest], bool]
    code: str
    message: str
    strict: bool = False


def _has_data_as_text(asked: HuaweiRequest) -> bool:
    return isinstance(asked.message.get("data", ""), str)


def _has_a_ttl(asked: HuaweiRequest) -> bool:
    found = _TTL.fullmatch(str(asked.android.get("ttl", "1s")))
    return found is not None and int(found[1]) <= 15 * 86_400


def _shows_what_a_click_does(asked: HuaweiRequest) -> bool:
    """Check for the action of a click, which every visible notification must have."""
    if "notification" not in asked.message:
        return True
    shown = asked.android.get("notification")
    return isinstance(shown, dict) and isinstance(shown.get("click_action"), dict)


def _says_something(asked: HuaweiRequest) -> bool:
    return bool(asked.message.get("data") or asked.message.get("notification"))


def _is_small_enough(asked: HuaweiRequest) -> bool:
    return len(msgspec.json.encode({**asked.message, "token": []})) <= _LIMIT_BYTES + len('"token":[],')


CHECKS = (
    HuaweiCheck(lambda a: a.gateway.issued(a.access_token), "80200001", "OAuth authentication error."),
    HuaweiCheck(lambda a: a.gateway.is_valid(a.access_token), "80200003", "OAuth token expired."),
    HuaweiCheck(lambda a: bool(a.message), "80100003", "Incorrect message structure."),
    HuaweiCheck(lambda a: a.body.keys() <= {"validate_only", "message"}, "80100003", "Unknown field.", strict=True),
    HuaweiCheck(lambda a: len(a.tokens) in _TOKENS, "80300010", "The number of tokens is out of range."),
    HuaweiCheck(lambda a: all(isinstance(token, str) for token in a.tokens), "80100003", "A token is no text."),
    HuaweiCheck(_has_data_as_text, "80100003", "data must be text."),
    HuaweiCheck(_has_a_ttl, "80100003", "ttl is out of range."),
    HuaweiCheck(_shows_what_a_click_does, "80100003", "click_action is missing.", strict=True),
    HuaweiCheck(_says_something, "80100003", "The message is empty.", strict=True),
    HuaweiCheck(_is_small_enough, "80100003", "The message is too large."),
)


class HuaweiGateway:
    """Push Kit with one app, and the endpoint of its access tokens."""

    name = str(CHANNEL)

    def __init__(self, place: GatewayContext) -> None:
        self.origin = ""
        self._deaths, self._clock = place.deaths, place.clock
        self._checks = tuple(check for check in CHECKS if place.strict or not check.strict)
        self._expiries: dict[str, float] = {}
        file = place.directory / SECRET_FILE
        if not file.exists():
            file.touch(mode=0o600)
            file.write_text(secrets.token_hex(32))
        self._secret = file.read_text().strip()

    def make(self, wanted: dict[str, Any]) -> Made:
        """Make a device."""
        token = f"IQAAAA{secrets.token_urlsafe(60)}"
        return Made(token, {"endpoint": token})

    def issued(self, access_token: str) -> bool:
        """Tell whether an access token was made here."""
        return access_token in self._expiries

    def is_valid(self, access_token: str) -> bool:
        """Tell whether an access token has not expired."""
        return self._clock() < self._expiries.get(access_token, 0)

    def expire_tokens(self) -> None:
        """Let every access token expire."""
        self._expiries = dict.fromkeys(self._expiries, 0)

    def token_of(self, request: Request) -> str:
        """Return the first recipient."""
        tokens = HuaweiRequest(request, self, _object(request.body)).tokens
        return str(tokens[0]) if tokens else ""

    def judge(self, request: Request) -> Verdict:
        """Give an access token, or judge a message by the table of checks and then by its recipients."""
        if request.path == TOKEN_PATH:
            return Verdict(answer=self._grant(request), keep=False)
        token = self.token_of(request)
        if request.path != SEND_PATH or request.method != "POST":
            return Verdict(answer=GatewayAnswer(404, (JSON_CONTENT,), b"{}"), reason="not found", token=token)
        asked = HuaweiRequest(request, self, _object(request.body))
        refused = next((check for check in self._checks if not check.holds(asked)), None)
        if refused is not None:
            return Verdict(answer=_answer(200, refused.code, refused.message), reason=refused.code, token=token)
        dead = [each for each in asked.tokens if each in self._deaths]
        if len(dead) == len(asked.tokens):
            return Verdict(answer=_answer(200, "80300007", "All tokens are invalid."), reason="80300007", token=token)
        partly = msgspec.json.encode({"success": len(asked.tokens) - len(dead), "illegal_tokens": dead}).decode()
        answer = _answer(200, "80100000", partly) if dead else _answer(200, "80000000", "Success")
        data = asked.message.get("data", "").encode()
        return Verdict(
            answer=answer,
            accepted=True,
            token=token,
            notification_id=notification_id_in(data),
            push_type=str(asked.android.get("urgency", "NORMAL")),
        )

    def refuse(self, refusal: Refusal, request: Request, *, gone_at_ms: int | None = None) -> GatewayAnswer:
        """Refuse as Huawei writes it; a reason that is a number is its code."""
        if gone_at_ms is not None:
            return _answer(200, "80300007", "All tokens are invalid.")
        return _answer(refusal.status, refusal.reason if refusal.reason.isdecimal() else "", refusal.reason)

    def _grant(self, request: Request) -> GatewayAnswer:
        form = dict(parse_qsl(request.body.decode("utf-8", "replace")))
        is_form = (request.headers.get("content-type") or "").startswith("application/x-www-form-urlencoded")
        knows = form.get("client_id") == APP_ID and hmac.compare_digest(form.get("client_secret", ""), self._secret)
        if request.method != "POST" or not is_form or form.get("grant_type") != "client_credentials" or not knows:
            said = {"error": 1101, "sub_error": 20001, "error_description": "invalid request"}
            return GatewayAnswer(400, (JSON_CONTENT,), msgspec.json.encode(said))
        token = secrets.token_urlsafe(40)
        self._expiries[token] = self._clock() + LIFETIME_S
        granted = {"access_token": token, "expires_in": LIFETIME_S, "token_type": "Bearer"}
        return GatewayAnswer(200, (JSON_CONTENT,), msgspec.json.encode(granted))


def _object(body: bytes) -> dict[str, Any]:
    try:
        return msgspec.json.decode(body, type=dict[str, Any])
    except msgspec.DecodeError:
        return {}


def _answer(status: int, code: str, message: str) -> GatewayAnswer:
    said = {"code": code, "msg": message, "requestId": secrets.token_hex(16)}
    return GatewayAnswer(status, (JSON_CONTENT,), msgspec.json.encode(said))


def _account(directory: Path, url: str) -> dict[str, Any]:
    return {
        "app_id": APP_ID,
        "app_secret_file": str(directory / SECRET_FILE),
        "endpoint": url,
        "token_endpoint": url,
        "ca_file": str(directory / CA),
    }


ACCOUNT = Account(str(CHANNEL), "huawei", _account, prompt={"timeout_s": 3})
COUNTERPART = Counterpart(HuaweiGateway.name, HuaweiGateway, account=ACCOUNT)
