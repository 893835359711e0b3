"""A mail server as providers run one: it wants TLS and a login, reads every message as strictly as the standards allow,
and keeps it in its reader's mailbox. SMTP itself is in `smtp`.
"""

import base64
import re
import secrets
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec
from cryptography.hazmat.primitives import serialization

from waypost.lab import mail_message
from waypost.lab.counterparts import Account, Counterpart, GatewayContext, Made
from waypost.lab.credentials import CA, DKIM_KEY
from waypost.lab.exchange import GatewayAnswer, Refusal, Request, Verdict
from waypost.lab.smtp import SmtpConnection

USERNAME, PASSWORD, TOKEN = "lab", "lab-password", "lab-token"
PASSWORD_FILE, TOKEN_FILE, CALLBACK_PASSWORD_FILE = "smtp-password", "smtp-token", "callback-password"
SELECTOR = "lab"
"""The selector under which the key in `dkim.pem` is published, for every domain."""
_REFERENCE = re.compile(r"<?([0-9a-f-]{36})\.\d+(?:@.*)?")


class _Wanted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The mailbox that is asked for."""

    address: str | None = None


class EmailGateway:
    """The mail server and its mailboxes; every mailbox is there unless it was killed."""

    name = "email"

    def __init__(self, place: GatewayContext) -> None:
        self.origin = ""
        self.strict = place.strict
        self.deaths: dict[str, int] = place.deaths
        self._directory = place.directory
        callback_password = secrets.token_urlsafe(24)
        kept = ((PASSWORD_FILE, PASSWORD), (TOKEN_FILE, TOKEN), (CALLBACK_PASSWORD_FILE, callback_password))
        for name, content in kept:
            _write_missing(place.directory / name, content.encode())

    def make(self, wanted: dict[str, Any]) -> Made:
        """Name a mailbox: the one that is wanted, or a new one."""
        address = msgspec.convert(wanted, _Wanted).address or f"reader-{secrets.token_hex(4)}@lab.example"
        return Made(address, {"endpoint": address, "address": address})

    def token_of(self, request: Request) -> str:
        """Return the recipient's mailbox."""
        return request.path

    def judge(self, request: Request) -> Verdict:
        """Judge a message by the table of checks."""
        mail = mail_message.read(request.body, request.headers["mail-from"], request.path, self.published)
        reason = mail_message.fault_of(mail) if self.strict else None
        if reason is not None:
            answer = self.refuse(Refusal(550, f"5.6.0 {reason}"), request)
            return Verdict(answer=answer, reason=reason, token=request.path)
        found = _REFERENCE.fullmatch(str(mail.parsed["X-Waypost-Id"] or mail.parsed["Message-ID"]))
        return Verdict(
            answer=GatewayAnswer(250, body=b"2.0.0 queued as " + secrets.token_hex(5).upper().encode()),
            accepted=True, token=request.path, notification_id=found[1] if found else "", push_type="mail",
            plaintext=msgspec.json.encode(mail_message.shown(mail)),
        )  # fmt: skip

    def refuse(self, refusal: Refusal, _request: Request, *, gone_at_ms: int | None = None) -> GatewayAnswer:
        """Refuse in SMTP's words: the reason is the text, which begins with the enhanced code."""
        if gone_at_ms is not None:
            return GatewayAnswer(550, body=b"5.1.1 no such mailbox")
        return GatewayAnswer(refusal.status, body=(refusal.reason or "no").encode())

    def admits(self, username: str, password: str | None = None, token: str | None = None) -> bool:
        """Tell whether a login is the lab's."""
        return username == USERNAME and (password == PASSWORD or token == TOKEN)

    def published(self, name: str) -> bytes | None:
        """Look a DKIM key up, as DNS would say it."""
        if not name.startswith(f"{SELECTOR}._domainkey."):
            return None
        key = serialization.load_pem_private_key((self._directory / DKIM_KEY).read_bytes(), None)
        public = key.public_key().public_bytes(
            serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        return b"v=DKIM1; k=rsa; p=" + base64.b64encode(public)


def _write_missing(path: Path, content: bytes) -> None:
    if not path.exists():
        path.touch(mode=0o600)
        path.write_bytes(content)


def _account(directory: Path, url: str) -> dict[str, Any]:
    place = urlsplit(url)
    return {
        "host": place.hostname, "port": place.port, "sender": "Lab <news@lab.example>", "username": USERNAME,
        "password_file": str(directory / PASSWORD_FILE),
        "callback_password_file": str(directory / CALLBACK_PASSWORD_FILE), "ca_file": str(directory / CA),
    }  # fmt: skip


COUNTERPART = Counterpart(
    EmailGateway.name,
    EmailGateway,
    SmtpConnection,
    "smtp",
    account=Account("email", "email", _account, {"timeout_s": 4}),
)
