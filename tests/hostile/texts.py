"""Texts that some program some day took for something else, and the fields that they are put into."""

from __future__ import annotations

from enum import Flag, auto
from typing import Any, Final

from msgspec import Struct

MARK: Final = "wpmark"
"""In every text: what holds it is content, and has no business in a log."""


class Trait(Flag):
    """What a field may have against a text."""

    NONE = 0
    CONTROL = auto()
    """ASCII control characters."""
    SPACE = auto()
    """White space, of Unicode's too."""
    NOT_ASCII = auto()


class Text(Struct, frozen=True):
    """One text."""

    said: str
    traits: Trait = Trait.NONE
    cleaned: str | None = None
    """Without control characters and white space around it, where that is another text."""
    line: str | None = None
    """The same on one line, where that is another text."""

    @property
    def shown(self) -> str:
        """What a shape that cleans keeps of a body."""
        return self.said if self.cleaned is None else self.cleaned

    @property
    def titled(self) -> str:
        """What it keeps of a title."""
        return self.shown if self.line is None else self.line


def _text(rest: str, traits: Trait = Trait.NONE, cleaned: str | None = None, line: str | None = None) -> Text:
    marked = [None if each is None else MARK + each for each in (cleaned, line)]
    return Text(MARK + rest, traits, *marked)


_C, _S, _N = Trait.CONTROL, Trait.SPACE, Trait.NOT_ASCII

TEXTS: Final[dict[str, Text]] = {
    "SQL": _text("'; DROP TABLE notification; --", _S),
    "SQL, quotes": _text("\"'`\\\\' OR '1'='1", _S),
    "JSON": _text('"}],"user_id":"admin","x":[{"'),
    "HTML": _text("<script>alert(1)</script>"),
    "XML entity": _text('<!ENTITY x SYSTEM "file:///etc/passwd">&x;', _S),
    "template": _text("{{7*7}}${7*7}#{7*7}<%=7*7%>"),
    "JNDI": _text("${jndi:ldap://127.0.0.1/x}"),
    "format": _text("%s%n%x{0}{self.__class__}{}%(user)s", _N & _S),
    "shell": _text("$(reboot)`reboot`;reboot|&"),
    "spreadsheet": _text('=cmd|"/c calc"!A1', _S),
    "path": _text("../../../../etc/passwd%00.png"),
    "script URL": _text("javascript:alert(1)"),
    "LDAP": _text("*)(uid=*))(|(uid=*"),
    "header": _text(
        "\r\nX-Evil: 1\r\n\r\nHTTP/1.1 200 OK", _C | _S, "\nX-Evil: 1\n\nHTTP/1.1 200 OK", " X-Evil: 1 HTTP/1.1 200 OK"
    ),
    "log line": _text(
        '\n{"level":"error","event":"request.failed"}', _C | _S, None, ' {"level":"error","event":"request.failed"}'
    ),
    "Redis": _text("\r\n*1\r\n$8\r\nFLUSHALL\r\n", _C | _S, "\n*1\n$8\nFLUSHALL", " *1 $8 FLUSHALL"),
    "last newline": _text("\n", _C | _S, ""),
    "tab": _text("\t-", _C | _S, None, " -"),
    "NUL": _text("\x00end", _C, "end"),
    "escaped zero": _text("\\u0000"),
    "escape": _text("\x1b[31mred\x1b[0m\x07\x08", _C, "[31mred[0m"),
    "delete": _text("\x7fend", _C, "end"),
    "C1": _text("\x85\x9bend", _S | _N, "end"),
    "bidi": _text("\u202egnp.exe\u2066\u2069", _N),
    "invisible": _text("\u200b\u200d\ufeff\u2060end", _N),
    "line separator": _text("\u2028\u2029end", _S | _N),
    "combining": _text("Z\u0351\u036b\u0343\u036a\u0302\u036b" * 4, _N),
    "not characters": _text("\ufffe\uffff\ufdd0\U0010ffff", _N),
    "outside the BMP": _text("\U0001f4a5\U0001f468\u200d\U0001f469\u200d\U0001f467", _N),
    "looks the same": _text("аdmin\u0131\u212a", _N),
}  # fmt: skip - a line each

FREE: Final = Trait.NONE
IDENTITY: Final = Trait.CONTROL
LINK: Final = Trait.CONTROL | Trait.SPACE
KEY: Final = Trait.CONTROL | Trait.SPACE | Trait.NOT_ASCII

FIELDS: Final[dict[str, Trait]] = {
    "user_id": IDENTITY,
    "device_ids[0]": IDENTITY,
    "title": FREE,
    "subtitle": FREE,
    "body": FREE,
    "data": FREE,
    "image": LINK,
    "icon": LINK,
    "link": LINK,
    "actions[0].id": FREE,
    "actions[0].title": FREE,
    "actions[0].link": LINK,
    "sound": FREE,
    "category": FREE,
    "thread": FREE,
    "android_channel": FREE,
    "collapse_key": FREE,
    "idempotency_key": KEY,
    "overrides": FREE,
    "type": IDENTITY,
}
"""Every field that takes text of the caller's own, and what it refuses."""
WORDS: Final = ("kind", "urgency", "guarantee", "push_type", "retry_policy", "scheduled_at")
"""Fields that take certain words alone: no text of the list is one."""


def put(text: str, path: str) -> Any:
    """The value of the field that *path* begins with, so that *text* stands at *path*."""
    match path:
        case "device_ids[0]":
            return [text]
        case "data":
            return {"text": text, "list": [text], text: {text: text}}
        case "overrides":
            return {"apns": {"wp": {text: text}}}
        case "actions[0].id":
            return [{"id": text, "title": "t"}]
        case "actions[0].title":
            return [{"id": "a", "title": text}]
        case "actions[0].link":
            return [{"id": "a", "title": "t", "link": text}]
        case _:
            return text


def name_of(path: str) -> str:
    """The field that *path* begins with."""
    return path.partition("[")[0].partition(".")[0]
