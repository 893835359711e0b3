"""What an e-mail says: its subject, text and HTML, from a notification's content and ``overrides.email``."""

from __future__ import annotations

import re
from html import escape
from typing import Any, Final

from msgspec import Struct

from waypost.channels.email.mailboxes import why_no_mailbox
from waypost.channels.email.settings import CHANNEL
from waypost.domain.content import Content, Kind
from waypost.domain.errors import Fault
from waypost.domain.message import Message

TEXTS: Final = ("subject", "text", "html", "reply_to")
SUBJECT_LIMIT: Final = 78
"""Where a subject is made of a body, it is cut here: the length of a line that is shown (RFC 5322, section 2.1.1)."""
HEADERS: Final = frozenset({"in-reply-to", "references", "importance", "keywords", "organization", "feedback-id"})
"""The headers that a submission may set, beside those that begin with ``X-``."""
_HEADER_NAME = re.compile(r"[A-Za-z0-9-]{1,64}")
_HEADER_LIMIT = 900
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")


class Text(Struct, frozen=True):
    """The parts that a reader sees."""

    subject: str
    text: str
    html: str | None


def text_of(message: Message) -> Text | None:
    """Return what *message* says; None where there is nothing to be read."""
    content, override = message.content, message.override
    subject = one_line(override.get("subject") or content.title or _shortened(content.body or override.get("text")))
    if message.kind is Kind.SILENT or not subject:
        return None
    if "text" in override:
        return Text(subject, override["text"], override.get("html"))
    return Text(subject, _plain(content) or subject, override.get("html") or _html(content, subject))


def one_line(text: str | None) -> str:
    """Return *text* as a header may have it: without line ends and other controls."""
    return " ".join(_CONTROLS.sub(" ", text or "").split())


def content_faults(content: Content, kind: Kind) -> list[Fault]:
    """List what no e-mail could say, with the path of each."""
    override = content.overrides.get(CHANNEL, {})
    path = f"overrides.{CHANNEL}"
    if override and kind is Kind.SILENT:
        return [Fault(path, "a silent notification is no e-mail")]
    found = [Fault(f"{path}.{key}", _why_not(key)) for key in override if key not in (*TEXTS, "headers")]
    found += [
        Fault(f"{path}.{key}", "must be a text")
        for key in TEXTS
        if key in override and not (isinstance(override[key], str) and override[key])
    ]
    if not found and one_line(override.get("subject")) != override.get("subject", ""):
        found.append(Fault(f"{path}.subject", "must be one line"))
    if not found and "reply_to" in override and (why := why_no_mailbox(override["reply_to"])):
        found.append(Fault(f"{path}.reply_to", why))
    return found + _header_faults(override.get("headers", {}), f"{path}.headers")


def _why_not(key: str) -> str:
    if key == "attachments":
        return "attachments are not sent: put a link into the text"
    return f"must be one of {', '.join((*TEXTS, 'headers'))}"


def _header_faults(headers: Any, path: str) -> list[Fault]:
    if not isinstance(headers, dict):
        return [Fault(path, "must be an object of headers")]
    found = []
    for name, value in headers.items():
        lower = name.lower()
        own = lower.startswith("x-waypost")
        if not _HEADER_NAME.fullmatch(name) or own or not (lower in HEADERS or lower.startswith("x-")):
            found.append(Fault(f"{path}.{name}", f"must begin with X- or be one of {', '.join(sorted(HEADERS))}"))
        elif not isinstance(value, str) or one_line(value) != value or not 0 < len(value) <= _HEADER_LIMIT:
            found.append(Fault(f"{path}.{name}", f"must be one line of at most {_HEADER_LIMIT} characters"))
    return found


def _shortened(text: str | None) -> str:
    line = one_line(text)
    return line if len(line) <= SUBJECT_LIMIT else line[: SUBJECT_LIMIT - 1].rstrip() + "…"


def _plain(content: Content) -> str:
    return "\n\n".join(part for part in (content.subtitle, content.body, content.link) if part)


def _html(content: Content, subject: str) -> str:
    parts = [f"<h1>{escape(content.title)}</h1>"] if content.title else []
    if content.subtitle:
        parts.append(f"<p><strong>{escape(content.subtitle)}</strong></p>")
    parts += [f"<p>{escape(part).replace(chr(10), '<br>')}</p>" for part in (content.body or "").split("\n\n") if part]
    if content.link:
        parts.append(f'<p><a href="{escape(content.link)}">{escape(content.link)}</a></p>')
    head = f'<head><meta charset="utf-8"><title>{escape(subject)}</title></head>'
    return f"<!doctype html>\n<html>{head}\n<body>\n" + "\n".join(parts) + "\n</body></html>\n"
