"""An e-mail as it arrived: whether it is one by RFC 5322, MIME and DKIM, and what a reader sees of it."""

import email
import email.policy
import re
from collections.abc import Callable
from email.message import EmailMessage
from email.utils import getaddresses, parsedate_to_datetime
from typing import Any

import dkim
import msgspec

_LINE_BYTES = 998
_HEADER = re.compile(rb"[!-9;-~]+:[ \t]?.*|[ \t]+\S.*")
_MESSAGE_ID = re.compile(r"<[A-Za-z0-9!#$%&'*+/=?^_`{|}~.-]+@[A-Za-z0-9.-]+>")
_ONCE = ("From", "Subject", "Date", "Message-ID")
_AT_MOST_ONCE = (
    "To", "Cc", "Reply-To", "Sender", "MIME-Version", "Content-Type", "Content-Transfer-Encoding",
    "List-Unsubscribe", "List-Unsubscribe-Post", "Auto-Submitted",
)  # fmt: skip
_UNSUBSCRIBING = ("list-unsubscribe", "list-unsubscribe-post")
PublicKeys = Callable[[str], bytes | None]
"""What a TXT record says under a name, None where there is none."""


class MailMessage(msgspec.Struct):
    """A message and its envelope, on its way through the checks."""

    raw: bytes
    sender: str
    recipient: str
    keys: PublicKeys
    parsed: EmailMessage

    @property
    def has_one_click(self) -> bool:
        """Whether it says that one click unsubscribes."""
        return self.parsed["List-Unsubscribe-Post"] is not None


class MailCheck(msgspec.Struct, frozen=True):
    """A row of checks: where *holds* is false the message is refused."""

    holds: Callable[[MailMessage], bool]
    reason: str


def read(raw: bytes, sender: str, recipient: str, keys: PublicKeys) -> MailMessage:
    """Parse a message, whatever is wrong with it."""
    parsed = email.message_from_bytes(raw, _class=EmailMessage, policy=email.policy.SMTP)
    return MailMessage(raw, sender, recipient, keys, parsed)


def _ends_its_lines(mail: MailMessage) -> bool:
    return not re.search(rb"\r(?!\n)|(?<!\r)\n|\0", mail.raw)


def _has_headers(mail: MailMessage) -> bool:
    head, end, _ = mail.raw.partition(b"\r\n\r\n")
    return bool(end) and all(_HEADER.fullmatch(line) for line in head.split(b"\r\n"))


def _has_each_once(mail: MailMessage) -> bool:
    found = [len(mail.parsed.get_all(name, [])) for name in _ONCE]
    return found == [1] * len(_ONCE) and all(len(mail.parsed.get_all(name, [])) <= 1 for name in _AT_MOST_ONCE)


def _is_for_its_reader(mail: MailMessage) -> bool:
    named = [mailbox for _, mailbox in getaddresses(mail.parsed.get_all("To", []))]
    return named == [mail.recipient] and mail.parsed["Bcc"] is None


def _has_a_date(mail: MailMessage) -> bool:
    try:
        return parsedate_to_datetime(str(mail.parsed["Date"])).tzinfo is not None
    except ValueError:
        return False


def _unsubscribes_by_the_book(mail: MailMessage) -> bool:
    """RFC 8058: the header has this one value, and one address by https beside it."""
    if not mail.has_one_click:
        return True
    ways = re.findall(r"<([^<>\s]+)>", str(mail.parsed["List-Unsubscribe"]))
    secure = [way for way in ways if way.startswith("https://")]
    return mail.parsed["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click" and len(secure) == 1


def _is_signed_by_its_domain(mail: MailMessage) -> bool:
    signature = mail.parsed["DKIM-Signature"]
    if signature is None:
        return True
    return bool(dkim.verify(mail.raw, dnsfunc=lambda name, timeout=5: mail.keys(name.decode().rstrip("."))))


def _signs_what_unsubscribes(mail: MailMessage) -> bool:
    signature = mail.parsed["DKIM-Signature"]
    if signature is None or not mail.has_one_click:
        return True
    fields = dict(part.strip().split("=", 1) for part in re.sub(r"\s", "", str(signature)).split(";") if part)
    return set(_UNSUBSCRIBING) <= set(fields["h"].lower().split(":"))


CHECKS = (
    MailCheck(_ends_its_lines, "a CR or LF alone, or a NUL"),
    MailCheck(lambda m: m.raw.isascii(), "bytes above 127 without 8BITMIME"),
    MailCheck(lambda m: all(len(line) <= _LINE_BYTES for line in m.raw.split(b"\r\n")), "a line over 998 bytes"),
    MailCheck(_has_headers, "what is no header"),
    MailCheck(_has_each_once, "From, Subject, Date and Message-ID must be there once, others at most once"),
    MailCheck(lambda m: len(getaddresses([str(m.parsed["From"])])) == 1, "From must be one mailbox"),
    MailCheck(_is_for_its_reader, "To must be the recipient, and Bcc is nobody's business"),
    MailCheck(_has_a_date, "Date is none"),
    MailCheck(lambda m: bool(_MESSAGE_ID.fullmatch(str(m.parsed["Message-ID"]))), "Message-ID is none"),
    MailCheck(lambda m: m.parsed["Auto-Submitted"] == "auto-generated", "what a program writes is auto-generated"),
    MailCheck(lambda m: not any(part.defects for part in m.parsed.walk()), "broken MIME"),
    MailCheck(lambda m: m.parsed["MIME-Version"] == "1.0", "no MIME"),
    MailCheck(_unsubscribes_by_the_book, "List-Unsubscribe-Post without one https address"),
    MailCheck(_is_signed_by_its_domain, "the DKIM signature does not verify"),
    MailCheck(_signs_what_unsubscribes, "the DKIM signature does not cover List-Unsubscribe"),
)


def fault_of(mail: MailMessage) -> str | None:
    """Say what is wrong with a message; None for one that is right."""
    return next((check.reason for check in CHECKS if not check.holds(mail)), None)


def shown(mail: MailMessage) -> dict[str, Any]:
    """Decode what a reader sees, beside all headers."""
    parts = {kind: mail.parsed.get_body((kind,)) for kind in ("plain", "html")}
    return {
        "from": str(mail.parsed["From"]),
        "to": mail.recipient,
        "subject": str(mail.parsed["Subject"]),
        "text": None if parts["plain"] is None else _text(parts["plain"]),
        "html": None if parts["html"] is None else _text(parts["html"]),
        "message_id": str(mail.parsed["Message-ID"]),
        "dkim": mail.parsed["DKIM-Signature"] is not None,
        "headers": {name: str(value) for name, value in mail.parsed.items()},
    }


def message_id_of(raw: bytes) -> str:
    """Read the Message-ID of a message as it arrived; nothing where it has none."""
    found = email.message_from_bytes(raw)["Message-ID"]
    return "" if found is None else str(found)


def bounce_of(raw: bytes, mailbox: str) -> bytes:
    """Write what a mail server sends back for a message that it took, of a *mailbox* that is not there (RFC 3464)."""
    head = raw.partition(b"\r\n\r\n")[0]
    domain = mailbox.rpartition("@")[2]
    parts = (
        ("text/plain; charset=us-ascii", b"The mailbox is not there."),
        (
            "message/delivery-status",
            f"Reporting-MTA: dns; {domain}\r\n\r\nFinal-Recipient: rfc822; {mailbox}\r\nAction: failed\r\n"
            "Status: 5.1.1".encode(),
        ),
        ("text/rfc822-headers", head),
    )
    written = b"".join(b"--bounce\r\nContent-Type: %s\r\n\r\n%s\r\n" % (kind.encode(), text) for kind, text in parts)
    start = (
        f"From: <mailer-daemon@{domain}>\r\nSubject: Undelivered mail\r\nMIME-Version: 1.0\r\nContent-Type: "
        'multipart/report; report-type=delivery-status; boundary="bounce"\r\n\r\n'
    )
    return start.encode() + written + b"--bounce--\r\n"


def _text(part: Any) -> str:
    return str(part.get_content()).replace("\r\n", "\n")
