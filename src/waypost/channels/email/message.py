"""The message on the wire: headers and body (RFC 5322, MIME), in ASCII, with short lines that end with CR LF."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime, formataddr

from msgspec import Struct

from waypost.channels.email.content import Text, content_faults, one_line, text_of
from waypost.channels.email.dkim import DkimSigner, Header, body_hash_of
from waypost.channels.email.message_ids import REFERENCE_HEADER, message_id_of, reference_of
from waypost.channels.email.settings import Provider
from waypost.channels.email.unsubscribing import Unsubscribing
from waypost.channels.push.payload import too_large
from waypost.domain.delivery import Delivery
from waypost.domain.message import Message
from waypost.domain.outcome import Refused

LIMIT_BYTES = 512 * 1024
"""The most bytes of a message; servers take 10 MB and more, and what is stored of one is 64 KB at most."""
NOTHING = Refused("nothing_to_read", "a silent notification, or one without texts, is no e-mail")
_POLICY = SMTP.clone(cte_type="7bit")


class Author(Struct, frozen=True):
    """The author of an app's messages, and what they all have in common."""

    name: str
    mailbox: str
    bounces_to: str
    """The sender of the envelope."""
    reply_to: str | None
    domain: str
    provider: Provider
    unsubscribing: Unsubscribing
    signer: DkimSigner | None


class Rendering(Struct, frozen=True):
    """The part that all readers of a message share."""

    headers: tuple[Header, ...]
    body: bytes
    body_hash: str


def render(message: Message, author: Author) -> Rendering | Refused:
    """Render what all readers of *message* are told, or say why it is no e-mail."""
    for fault in content_faults(message.content, message.kind):  # it may be older than the app's section
        return Refused("invalid_override", f"{fault.path}: {fault.why}")
    text = text_of(message)
    if text is None:
        return NOTHING
    mime, body = _body(text)
    if refusal := too_large(len(body), LIMIT_BYTES):
        return refusal
    override = message.override
    reply_to = override.get("reply_to", author.reply_to)
    created_at = datetime.fromtimestamp(message.created_at / 1000, UTC)
    headers = [
        _folded("From", formataddr((author.name, author.mailbox))),
        _folded("Subject", text.subject),
        ("Date", b" " + format_datetime(created_at).encode()),
        *([("Reply-To", b" " + reply_to.encode())] if reply_to else []),
        ("Auto-Submitted", b" auto-generated"),
        *(_folded(name, one_line(value)) for name, value in override.get("headers", {}).items()),
        *mime,
    ]
    return Rendering(tuple(headers), body, body_hash_of(body) if author.signer else "")


def assemble(rendering: Rendering, delivery: Delivery, author: Author) -> bytes:
    """Build the message to one reader; built again, it is the same, byte by byte."""
    reference = reference_of(delivery.id, delivery.n)
    headers = [
        ("To", b" " + delivery.device.token.encode()),
        ("Message-ID", b" " + message_id_of(reference, author.domain).encode()),
        (REFERENCE_HEADER, b" " + reference.encode()),
        *_for_provider(author.provider, reference),
        *rendering.headers,
        *author.unsubscribing.headers(delivery.device, delivery.message.unsubscribe),
    ]
    if author.signer is not None:
        signed = [header for header in headers if _stays(header[0].lower(), author.provider)]
        signature = author.signer.sign(signed, rendering.body_hash, delivery.message.created_at)
        headers.insert(0, ("DKIM-Signature", b" " + signature))
    head = b"".join(name.encode() + b":" + value + b"\r\n" for name, value in headers)
    return head + b"\r\n" + rendering.body


def _for_provider(provider: Provider, reference: str) -> list[Header]:
    """Return what makes a provider keep our ``Message-ID``, and say it back in its callbacks."""
    if provider != "postmark":
        return []
    return [("X-PM-KeepID", b" true"), ("X-PM-Metadata-waypost", b" " + reference.encode())]


def _stays(name: str, provider: Provider) -> bool:
    """Tell whether the server leaves a header as it is: what it changes must not be signed."""
    return not name.startswith("x-") and not (provider == "ses" and name in {"date", "message-id"})


def _folded(name: str, value: str) -> Header:
    """Encode a header's text, which has no line ends, in lines of 78 bytes."""
    line = _POLICY.header_factory(name, value).fold(policy=_POLICY)
    return name, line.encode("ascii")[len(name) + 1 : -2]


def _body(text: Text) -> tuple[list[Header], bytes]:
    """Build the MIME parts; their boundary follows from what they say, so that a retry has the same."""
    made = EmailMessage(policy=_POLICY)
    made.set_content(text.text, cte="quoted-printable")
    if text.html is not None:
        made.add_alternative(text.html, subtype="html", cte="quoted-printable")
        made.set_boundary("=_" + hashlib.sha256(f"{text.text}\0{text.html}".encode()).hexdigest()[:32])
    head, _, body = made.as_bytes().partition(b"\r\n\r\n")
    headers = []
    for line in head.replace(b"\r\n ", b"\n ").replace(b"\r\n\t", b"\n\t").split(b"\r\n"):
        name, _, value = line.partition(b":")
        headers.append((name.decode(), value.replace(b"\n", b"\r\n")))
    return headers, body
