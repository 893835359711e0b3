"""Receivers of webhooks: one that verifies Standard Webhooks, and the incoming webhooks of Slack, Teams and Discord.

What is posted to `/slack/…`, `/teams/…` or `/discord/…` is judged as these do; every other path verifies signatures
with the secret in `webhook.secret`, or the one before it in `webhook-old.secret`.
"""

import base64
import hashlib
import hmac
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec

from waypost.lab.counterparts import Account, Counterpart, GatewayContext, Made
from waypost.lab.credentials import CA
from waypost.lab.exchange import JSON_CONTENT, GatewayAnswer, Refusal, Request, Verdict

SECRET, OLD_SECRET = "webhook.secret", "webhook-old.secret"
_TOLERANCE_S = 300
_TEXT_CONTENT = ("content-type", "text/plain; charset=utf-8")
_CARD = "application/vnd.microsoft.card.adaptive"


class _Wanted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The kind of receiver that is asked for."""

    kind: str = "hooks"
    """`hooks`, `slack`, `teams` or `discord`."""


class WebhookGateway:
    """Receivers at any path."""

    name = "webhook"

    def __init__(self, place: GatewayContext) -> None:
        self.origin = ""
        self._directory, self._clock, self._deaths = place.directory, place.clock, place.deaths
        for name in (SECRET, OLD_SECRET):
            path = place.directory / name
            if not path.exists():
                path.touch(mode=0o600)
                path.write_text(f"whsec_{base64.b64encode(secrets.token_bytes(32)).decode()}\n")

    def make(self, wanted: dict[str, Any]) -> Made:
        """Make a receiver: one that verifies, or with `{"kind": "slack"}` one of a chat."""
        kind = msgspec.convert(wanted, _Wanted).kind
        if kind != "hooks" and kind not in _CHATS:
            raise ValueError(f"kind must be one of hooks, {', '.join(_CHATS)}")
        path = f"/{kind}/{secrets.token_urlsafe(12)}"
        return Made(path, {"endpoint": self.origin + path})

    def token_of(self, request: Request) -> str:
        """Return the path."""
        return urlsplit(request.path).path

    def judge(self, request: Request) -> Verdict:
        """Judge the body as the chat of its path does, or verify its signature."""
        token = self.token_of(request)
        chat = _CHATS.get(token.split("/")[1])
        if request.method != "POST":
            refusal: Refusal | None = Refusal(405, "method not allowed")
        elif token in self._deaths:
            refusal = Refusal(410, "gone")
        else:
            refusal = self._unverified(request) if chat is None else chat.refuses(request)
        if refusal is None:
            answer = GatewayAnswer(200, (_TEXT_CONTENT,), b"ok") if chat is None else chat.answer
        else:
            answer = self.refuse(refusal, request)
        return Verdict(
            answer=answer, accepted=refusal is None, reason="" if refusal is None else refusal.reason, token=token,
            notification_id=request.headers.get("webhook-id", ""), push_type=_type_of(request.body),
        )  # fmt: skip

    def refuse(self, refusal: Refusal, _request: Request, *, gone_at_ms: int | None = None) -> GatewayAnswer:
        """Refuse with a line of text; a receiver that ended says 410."""
        status = refusal.status if gone_at_ms is None else 410
        return GatewayAnswer(status, (_TEXT_CONTENT,), refusal.reason.encode())

    def _unverified(self, request: Request) -> Refusal | None:
        headers = request.headers
        name, at, said = (headers.get(f"webhook-{part}", "") for part in ("id", "timestamp", "signature"))
        if not name or "." in name or not at.isdecimal() or abs(self._clock() - int(at)) > _TOLERANCE_S:
            return Refusal(401, "headers missing, or too old")
        text = f"{name}.{at}.".encode() + request.body
        for file in (SECRET, OLD_SECRET):
            key = base64.b64decode((self._directory / file).read_text().strip().removeprefix("whsec_"))
            wanted = f"v1,{base64.b64encode(hmac.digest(key, text, hashlib.sha256)).decode()}"
            if any(hmac.compare_digest(each, wanted) for each in said.split(" ")):
                return None
        return Refusal(401, "no matching signature")


class _Chat(msgspec.Struct, frozen=True):
    """The incoming webhook of a chat: what it refuses, and what it answers otherwise."""

    refuses: Callable[[Request], Refusal | None]
    answer: GatewayAnswer


def _slack(request: Request) -> Refusal | None:
    said = _read(request)
    if said is None:
        return Refusal(400, "invalid_payload")
    if not said.get("text") and not said.get("blocks") and not said.get("attachments"):
        return Refusal(400, "no_text")
    return None


def _teams(request: Request) -> Refusal | None:
    said = _read(request)
    cards = (said or {}).get("attachments")
    if said is None or said.get("type") != "message" or not isinstance(cards, list) or len(cards) != 1:
        return Refusal(400, "a message with one attachment is wanted")
    card = cards[0].get("content") or {}
    if cards[0].get("contentType") != _CARD or card.get("type") != "AdaptiveCard" or not card.get("version"):
        return Refusal(400, "the attachment must be an adaptive card")
    return None if card.get("body") else Refusal(400, "the card is empty")


def _discord(request: Request) -> Refusal | None:
    said = _read(request)
    if said is None:
        return Refusal(400, "50109 The request body contains invalid JSON.")
    content = said.get("content") or ""
    if len(content) > 2_000:
        return Refusal(400, "50035 Must be 2000 or fewer in length.")
    return None if content or said.get("embeds") else Refusal(400, "50006 Cannot send an empty message")


def _read(request: Request) -> dict[str, Any] | None:
    if not request.headers.get("content-type", "").startswith("application/json"):
        return None
    try:
        return msgspec.json.decode(request.body, type=dict[str, Any])
    except msgspec.DecodeError:
        return None


def _type_of(body: bytes) -> str:
    """Return what the body says that it is, for the screen."""
    try:
        return str(msgspec.json.decode(body, type=dict[str, Any]).get("type", ""))
    except msgspec.DecodeError:
        return ""


_CHATS = {
    "slack": _Chat(_slack, GatewayAnswer(200, (_TEXT_CONTENT,), b"ok")),
    "teams": _Chat(_teams, GatewayAnswer(202, (JSON_CONTENT,), b"")),
    "discord": _Chat(_discord, GatewayAnswer(204, (), b"")),
}


def _account(directory: Path, url: str) -> dict[str, Any]:
    return {"secret_file": str(directory / SECRET), "allow_endpoints": [url], "ca_file": str(directory / CA)}


COUNTERPART = Counterpart(WebhookGateway.name, WebhookGateway, account=Account("webhook", "url", _account))
