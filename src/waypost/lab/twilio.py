"""Twilio's Messages API: the form is checked, messages get SIDs, and their reports are posted with a signature.

Facts: Twilio, "Messages resource" (2010-04-01), "Error and warning dictionary", "Validating signatures from Twilio".
A number that ends in a code from 30003 to 30008 is taken and reported as undelivered for that reason; one that ends in
99999 is taken, and nothing more is heard of it. Twilio's magic test numbers are refused as there.
"""

import asyncio
import base64
import hashlib
import hmac
import re
import secrets
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlsplit

import aiohttp
import msgspec

from waypost.lab.counterparts import Account, Counterpart, GatewayContext, Made
from waypost.lab.credentials import CA
from waypost.lab.exchange import JSON_CONTENT, GatewayAnswer, Refusal, Request, Verdict

ACCOUNT_SID = "AC" + "0123456789abcdef" * 2
PATH = f"/2010-04-01/Accounts/{ACCOUNT_SID}/Messages.json"
TOKEN_FILE = "twilio_token.txt"
_NUMBER = re.compile(r"\+[1-9][0-9]{6,14}")
_FROM = re.compile(r"\+[1-9][0-9]{6,14}|[0-9]{3,8}|[A-Za-z0-9 ]{1,11}")
_SERVICE = re.compile(r"MG[0-9a-fA-F]{32}")
_KNOWN = frozenset(
    {"To", "From", "MessagingServiceSid", "Body", "StatusCallback", "ValidityPeriod", "SmartEncoded", "MediaUrl"}
)
_MAGIC = {
    "+15005550001": 21211, "+15005550002": 21612, "+15005550003": 21408, "+15005550004": 21610, "+15005550009": 21614,
}  # fmt: skip
_UNDELIVERED = re.compile(r"3000[3-8]$")
_SILENT = "99999"
_LIMIT = 1_600
_REPORTS_S = 30.0


class TwilioRequest(msgspec.Struct):
    """A request on its way through the checks."""

    request: Request
    gateway: "TwilioGateway"
    form: dict[str, str]
    repeated: bool

    @property
    def to(self) -> str:
        """The recipient's number."""
        return self.form.get("To", "")


class TwilioCheck(msgspec.Struct, frozen=True):
    """A row of checks: when *holds* is false the message is refused with *code*."""

    holds: Callable[[TwilioRequest], bool]
    status: int
    code: int
    message: str
    strict: bool = False


def _has_one_sender(message: TwilioRequest) -> bool:
    return ("From" in message.form) != ("MessagingServiceSid" in message.form)


def _has_known_sender(message: TwilioRequest) -> bool:
    service, number = message.form.get("MessagingServiceSid"), message.form.get("From", "")
    return bool(_FROM.fullmatch(number) if service is None else _SERVICE.fullmatch(service))


def _has_valid_period(message: TwilioRequest) -> bool:
    period = message.form.get("ValidityPeriod", "1")
    return period.isdecimal() and 1 <= int(period) <= 36_000


def _has_callback(message: TwilioRequest) -> bool:
    url = message.form.get("StatusCallback")
    parts = urlsplit(url or "https://example.com")
    return parts.scheme in ("http", "https") and bool(parts.hostname) and "_" not in (parts.hostname or "")


CHECKS = (
    TwilioCheck(lambda m: m.gateway.admits(m.request), 401, 20003, "Authenticate"),
    TwilioCheck(lambda m: m.request.path == PATH, 404, 20404, "The requested resource was not found"),
    TwilioCheck(lambda m: m.request.method == "POST", 405, 20004, "Method not allowed"),
    TwilioCheck(
        lambda m: (m.request.headers.get("content-type") or "").startswith("application/x-www-form-urlencoded"),
        415, 20415, "Unsupported Media Type",
    ),
    TwilioCheck(lambda m: not m.repeated, 400, 20001, "A parameter was given twice", strict=True),
    TwilioCheck(lambda m: m.form.keys() <= _KNOWN, 400, 20001, "Unknown parameter", strict=True),
    TwilioCheck(lambda m: bool(m.to), 400, 21604, "A 'To' phone number is required."),
    TwilioCheck(lambda m: _NUMBER.fullmatch(m.to) is not None, 400, 21211, "Invalid 'To' Phone Number"),
    TwilioCheck(_has_one_sender, 400, 21603, "A 'From' phone number is required."),
    TwilioCheck(_has_known_sender, 400, 21606, "The 'From' phone number is not a valid, SMS-capable number"),
    TwilioCheck(lambda m: bool(m.form.get("Body") or m.form.get("MediaUrl")), 400, 21602, "Message body is required."),
    TwilioCheck(lambda m: len(m.form.get("Body", "")) <= _LIMIT, 400, 21617, "The message body is too long"),
    TwilioCheck(_has_valid_period, 400, 21621, "The validity period is out of range"),
    TwilioCheck(_has_callback, 400, 21609, "Invalid 'StatusCallback' URL"),
)  # fmt: skip


class TwilioGateway:
    """Twilio with one account."""

    name = "twilio"

    def __init__(self, place: GatewayContext) -> None:
        self.origin = ""
        self.deaths: dict[str, int] = place.deaths
        self._checks = tuple(check for check in CHECKS if place.strict or not check.strict)
        self._auth_token = _token_in(place)
        self._reports: set[asyncio.Task[None]] = set()

    def make(self, wanted: dict[str, Any]) -> Made:
        """Make a telephone, or take `{"number": "+…"}` for one."""
        number = str(wanted.get("number") or f"+1555{secrets.randbelow(10**7):07}")
        if not _NUMBER.fullmatch(number):
            raise ValueError("a number is + and 7 to 15 digits")
        return Made(number, {"endpoint": number, "account_sid": ACCOUNT_SID})

    def token_of(self, request: Request) -> str:
        """Return the recipient's number."""
        return dict(parse_qsl(request.body.decode("utf-8", "replace"))).get("To", "")

    def admits(self, request: Request) -> bool:
        """Tell whether the request is signed in with the account's SID and token."""
        kind, _, said = (request.headers.get("authorization") or "").partition(" ")
        expected = base64.b64encode(f"{ACCOUNT_SID}:{self._auth_token}".encode()).decode()
        return kind.lower() == "basic" and hmac.compare_digest(said.encode(), expected.encode())

    def judge(self, request: Request) -> Verdict:
        """Judge the message by the table of checks, then by its number."""
        text = request.body.decode("utf-8", "replace")
        every = parse_qs(text, keep_blank_values=True)
        form = {name: values[-1] for name, values in every.items()}
        message = TwilioRequest(request, self, form, any(len(values) > 1 for values in every.values()))
        refused = next((check for check in self._checks if not check.holds(message)), None)
        if refused is not None:
            return self._refused(message, refused.status, refused.code, refused.message)
        number = 21211 if message.to in self.deaths else _MAGIC.get(message.to)
        if number is not None:
            return self._refused(message, 400, number, f"refused as {number}")
        sid = f"SM{secrets.token_hex(16)}"
        if "StatusCallback" in form:
            self._report(form["StatusCallback"], form, sid)
        said = {
            "sid": sid, "account_sid": ACCOUNT_SID, "to": message.to, "from": form.get("From"), "body": form["Body"],
            "status": "queued" if "From" in form else "accepted", "direction": "outbound-api", "num_segments": "1",
            "error_code": None, "error_message": None, "api_version": "2010-04-01",
            "messaging_service_sid": form.get("MessagingServiceSid"),
        }  # fmt: skip
        answer = GatewayAnswer(201, (JSON_CONTENT,), msgspec.json.encode(said))
        about = parse_qs(urlsplit(form.get("StatusCallback", "")).query).get("id", [""])[0]
        return Verdict(
            answer=answer, accepted=True, token=message.to, plaintext=form["Body"].encode(), push_type="sms",
            notification_id=about,
        )  # fmt: skip

    def refuse(self, refusal: Refusal, _request: Request, *, gone_at_ms: int | None = None) -> GatewayAnswer:
        """Refuse as Twilio writes it; a reason that is a number is its code."""
        if gone_at_ms is not None:
            return _problem(400, 21211, "Invalid 'To' Phone Number")
        code = int(refusal.reason) if refusal.reason.isdecimal() else {429: 20429}.get(refusal.status, refusal.status)
        return _problem(refusal.status, code, refusal.reason)

    def _refused(self, message: TwilioRequest, status: int, code: int, text: str) -> Verdict:
        return Verdict(answer=_problem(status, code, text), reason=str(code), token=message.to)

    def _report(self, url: str, form: dict[str, str], sid: str) -> None:
        task = asyncio.get_running_loop().create_task(self._post_reports(url, form, sid))
        self._reports.add(task)
        task.add_done_callback(self._reports.discard)

    async def _post_reports(self, url: str, form: dict[str, str], sid: str) -> None:
        """Post what becomes of a message: `sent`, then the end; a receiver that is away hears nothing more."""
        code = _UNDELIVERED.search(form["To"])
        ends = [] if form["To"].endswith(_SILENT) else ["undelivered" if code else "delivered"]
        timeout = aiohttp.ClientTimeout(total=_REPORTS_S)
        async with aiohttp.ClientSession(timeout=timeout) as session:
            for status in ("sent", *ends):
                fields = {
                    "MessageSid": sid, "SmsSid": sid, "MessageStatus": status, "SmsStatus": status,
                    "AccountSid": ACCOUNT_SID, "To": form["To"], "From": form.get("From", ""),
                    "ApiVersion": "2010-04-01",
                } | ({"ErrorCode": code.group()} if code and status == "undelivered" else {})  # fmt: skip
                signed = {"X-Twilio-Signature": sign(self._auth_token, url, list(fields.items()))}
                try:
                    async with session.post(url, data=fields, headers=signed, ssl=False):
                        pass
                except (aiohttp.ClientError, OSError, TimeoutError):
                    return


def sign(auth_token: str, url: str, fields: Sequence[tuple[str, str]]) -> str:
    """Sign a report: HMAC-SHA1 of the address and the posted fields by name, in base64."""
    said = "".join(f"{name}{value}" for name, value in sorted(fields))
    return base64.b64encode(hmac.new(auth_token.encode(), (url + said).encode(), hashlib.sha1).digest()).decode()


def _problem(status: int, code: int, text: str) -> GatewayAnswer:
    said = {"code": code, "message": text, "more_info": f"https://www.twilio.com/docs/errors/{code}", "status": status}
    return GatewayAnswer(status, (JSON_CONTENT,), msgspec.json.encode(said))


def _token_in(place: GatewayContext) -> str:
    """Read the account's auth token, made once and kept."""
    file = place.directory / TOKEN_FILE
    if not file.exists():
        file.touch(mode=0o600)
        file.write_text(secrets.token_hex(16))
    return file.read_text().strip()


def _account(directory: Path, url: str) -> dict[str, Any]:
    return {
        "account_sid": ACCOUNT_SID, "auth_token_file": str(directory / TOKEN_FILE), "from_number": "+15550100100",
        "endpoint": url, "ca_file": str(directory / CA),
    }  # fmt: skip


COUNTERPART = Counterpart(TwilioGateway.name, TwilioGateway, account=Account("sms", "phone", _account))
