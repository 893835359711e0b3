"""Submissions that mean no good, as JSON, each with what must come of it: the same list goes through every door."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from tests.hostile.texts import FIELDS, MARK, TEXTS, WORDS, Text, name_of, put

INVALID, JSON, LARGE = "invalid_request", "invalid_json", "too_large"


class Kept(Struct, frozen=True):
    """Accepted, and the fields it names are stored as here."""

    fields: dict[str, Any]


class Refused(Struct, frozen=True):
    """Refused with this code, for this field (and others, maybe); "" is the whole."""

    code: str
    field: str = ""


Must = Kept | Refused


class Case(Struct, frozen=True):
    """One submission."""

    name: str
    body: bytes
    must: Must
    text: Text | None = None
    """Which is in its title and body, and wherever else it may be."""


def cases() -> list[Case]:
    """The corpus."""
    found = [*_kept_texts(), *_refused_texts(), *_no_submission(), *_wrong_types(), *_bounds(), *_tricks()]
    assert len({each.name for each in found}) == len({each.body for each in found}) == len(found)
    return found


def encoded(said: Any) -> bytes:
    """As JSON."""
    return json.dumps(said, ensure_ascii=False).encode()


def _base(name: str) -> dict[str, Any]:
    """Something good, which is told from all others by its user."""
    return {"user_id": name, "title": "t", "body": f"{MARK} of {name}"}


def _with(name: str, must: Must, **fields: Any) -> Case:
    return Case(name, encoded(_base(name) | fields), must)


def _fine(name: str, **fields: Any) -> Case:
    return _with(name, Kept(_base(name) | fields), **fields)


def _bad(name: str, code: str, at: str, /, **fields: Any) -> Case:
    return _with(name, Refused(code, at), **fields)


def _raw(name: str, body: bytes, code: str = JSON, at: str = "") -> Case:
    return Case(name, body, Refused(code, at))


def _kept_texts() -> Iterator[Case]:
    """Each text in every field that takes it: it is stored as it came."""
    for name, text in TEXTS.items():
        fields: dict[str, Any] = {"user_id": f"text: {name}"}
        for path, refuses in FIELDS.items():
            if not text.traits & refuses and path not in ("actions[0].id", "actions[0].title"):
                fields[name_of(path)] = put(text.said, path)
        fields.setdefault("actions", [{"id": text.said, "title": text.said}])
        fields["user_id"] = f"text: {name}"
        yield Case(f"text: {name}", encoded(fields), Kept(fields), text)
        shown = {"user_id": f"shown: {name}", "title": text.said, "body": text.said, "data": put(text.said, "data")}
        yield Case(f"shown: {name}", encoded(shown), Kept(shown), text)
        if not text.traits & FIELDS["user_id"]:
            whole = {"user_id": text.said, "title": f"user: {name}", "body": "b"}
            yield Case(f"user: {name}", encoded(whole), Kept(whole))


def _refused_texts() -> Iterator[Case]:
    """Each text in each field that does not take it."""
    for name, text in TEXTS.items():
        for path, refuses in FIELDS.items():
            if text.traits & refuses:
                yield _bad(f"{path}: {name}", INVALID, path, **{name_of(path): put(text.said, path)})
    for field in WORDS:
        yield _bad(f"{field}: no word", INVALID, field, **{field: TEXTS["SQL"].said})


def _no_submission() -> Iterator[Case]:
    """What is no JSON in UTF-8, or no object."""
    good = encoded(_base("good"))
    yield _raw("nothing", b"")
    yield _raw("white space", b" \r\n\t ")
    yield _raw("byte order mark", b"\xef\xbb\xbf" + good)
    yield _raw("UTF-16", good.decode().encode("utf-16"))
    yield _raw("UTF-32", good.decode().encode("utf-32-le"))
    yield _raw("Latin-1", '{"user_id": "ä", "title": "ö"}'.encode("latin-1"))
    yield _raw("overlong UTF-8", b'{"user_id": "\xc0\x80", "title": "t"}')
    yield _raw("encoded surrogate", b'{"user_id": "a", "title": "\xed\xa0\x80"}')
    yield _raw("half a character", b'{"user_id": "a", "title": "\xf0\x9f')
    yield _raw("lone surrogate", b'{"user_id": "a", "title": "\\ud800"}')
    yield _raw("surrogates swapped", b'{"user_id": "a", "title": "\\udc00\\ud800"}')
    yield _raw("bare control character", b'{"user_id": "a", "title": "\x01"}')
    yield _raw("bare newline", b'{"user_id": "a", "title": "\n"}')
    yield _raw("unknown escape", b'{"user_id": "a", "title": "\\x41"}')
    yield _raw("cut off", good[:-1])
    yield _raw("something behind it", good + b" x")
    yield _raw("two of them", good + good)
    yield _raw("a comma too many", good[:-1] + b",}")
    yield _raw("a comment", b"/* */" + good)
    yield _raw("single quotes", good.replace(b'"', b"'"))
    yield _raw("a script", b"<script>alert(1)</script>")
    yield _raw("a form", b"user_id=a&title=t")
    yield _raw("YAML", b"user_id: a\ntitle: t\n")
    yield _raw("gzip", gzip.compress(good, mtime=0))
    yield _raw("zeroes", b"\0" * 4_096)
    yield _raw("all bytes", bytes(range(256)))
    yield _raw("not a number", b'{"user_id": "a", "title": "t", "data": {"a": NaN}}')
    yield _raw("infinity", b'{"user_id": "a", "title": "t", "data": {"a": -Infinity}}')
    out_of_range = b'{"user_id": "a", "title": "t", "data": {"a": 1e999}}'
    yield _raw("a number out of range", out_of_range, INVALID, "data[...]")
    yield _raw("deep lists", b'{"user_id": "a", "title": "t", "data": {"a": ' + b"[" * 20_000 + b"]" * 20_000 + b"}}")
    yield _raw("deep objects", b'{"data": ' + b'{"a":' * 20_000 + b"1" + b"}" * 20_001)
    yield _raw("unclosed lists", b"[" * 100_000, INVALID)
    for name, body in {"null": b"null", "a list": b"[" + good + b"]", "a text": b'"text"', "a number": b"17"}.items():
        yield _raw(name, body, INVALID)


def _wrong_types() -> Iterator[Case]:
    """A value of another type than the field's."""
    for field in ("user_id", "title", "body", "link", "sound", "idempotency_key"):
        for kind, value in {"number": 17, "true": True, "list": ["a"], "object": {"a": "b"}}.items():
            yield _bad(f"{field}: {kind}", INVALID, field, **{field: value})
    for field in ("ttl", "badge", "dedup_window"):
        for kind, value in {
            "text": "17",
            "true": True,
            "fraction": 1.5,
            "float": 17.0,
            "list": [17],
            "object": {},
        }.items():
            yield _bad(f"{field}: {kind}", INVALID, field, **{field: value})
    for field in ("data", "overrides"):
        for kind, value in {"text": "{}", "number": 1, "list": [], "null": None}.items():
            yield _bad(f"{field}: {kind}", INVALID, field, **{field: value})
    yield _bad("overrides: list inside", INVALID, "overrides[...]", overrides={"apns": []})
    for kind, value in {"text": "a", "object": {"0": "a"}, "null": None}.items():
        yield _bad(f"device_ids: {kind}", INVALID, "device_ids", device_ids=value)
        yield _bad(f"actions: {kind}", INVALID, "actions", actions=value)
    yield _bad("device_ids: numbers", INVALID, "device_ids[0]", device_ids=[1])
    yield _bad("actions: unknown key", INVALID, "actions[0].run", actions=[{"id": "a", "title": "t", "run": "x"}])
    yield _bad("actions: no title", INVALID, "actions[0].title", actions=[{"id": "a"}])
    yield _bad("scheduled_at: number", INVALID, "scheduled_at", scheduled_at=1_700_000_000)
    yield _bad("user_id: null", INVALID, "user_id", user_id=None)
    yield _bad("to: with a user", INVALID, "to", to={"channel": "fcm", "kind": "topic", "name": "n"})


def _bounds() -> Iterator[Case]:
    """At each bound, and just past it."""
    yield _fine("title: longest", title="\U0001f4a5" * 256)
    yield _bad("title: too long", INVALID, "title", title="\U0001f4a5" * 257)
    yield _fine("link: longest", link="l" * 2_048)
    yield _bad("link: too long", INVALID, "link", link="l" * 2_049)
    yield _bad("link: empty", INVALID, "link", link="")
    yield _bad("user_id: too long", INVALID, "user_id", user_id="u" * 129)
    yield _bad("user_id: empty", INVALID, "user_id", user_id="")
    yield _fine("type: longest", type="w" * 50)
    yield _bad("type: too long", INVALID, "type", type="w" * 51)
    yield _fine("key: longest", idempotency_key="k" * 255)
    yield _bad("key: too long", INVALID, "idempotency_key", idempotency_key="k" * 256)
    yield _bad("key: empty", INVALID, "idempotency_key", idempotency_key="")
    yield _bad("title and body: empty", INVALID, "title", title="", body="")
    yield _fine("device_ids: most", device_ids=[f"d{n}" for n in range(50)])
    yield _bad("device_ids: too many", INVALID, "device_ids", device_ids=[f"d{n}" for n in range(51)])
    yield _bad("device_ids: twice", INVALID, "device_ids", device_ids=["d", "d"])
    yield _bad("actions: too many", INVALID, "actions", actions=[{"id": "a", "title": "t"}] * 9)
    for name, value in {"below": -1, "past the end": 2_419_201, "huge": 10**30}.items():
        yield _bad(f"ttl: {name}", INVALID, "ttl", ttl=value)
    for name, value in {"below": -1, "past the end": 100_000, "huge": 10**30}.items():
        yield _bad(f"badge: {name}", INVALID, "badge", badge=value)
    times = {"year 0": "0000-01-01T00:00:00Z", "year 10000": "10000-01-01T00:00:00Z", "no zone": "2030-01-01T00:00:00"}
    times |= {
        "day 32": "2030-01-32T00:00:00Z",
        "far ahead": "9999-12-31T23:59:59Z",
        "with NUL": "2030-01-01T00:00:00Z\0",
    }
    for name, time in times.items():
        yield _bad(f"scheduled_at: {name}", INVALID, "scheduled_at", scheduled_at=time)
    yield _fine("data: widest integer", data={"a": 2**53, "b": -(2**53)})
    yield _bad("data: wider than 64 bits", INVALID, "data", data={"a": 1 << 64})
    yield _bad("data: 4,000 digits", INVALID, "data", data={"a": int("9" * 4_000)})
    yield _fine("data: deepest", data=_nested(16))
    yield _bad("data: too deep", INVALID, "data", data=_nested(17))
    yield _bad("overrides: too deep", INVALID, "overrides", overrides={"apns": _nested(17)})
    yield _fine("data: many keys", data={f"k{n}": n for n in range(4_000)})
    yield _bad("data: too many keys", LARGE, "", data={f"key-{n}": n for n in range(10_000)})
    yield _bad("body: too long", LARGE, "", body="b" * 65_536)
    yield _bad("body: too long in bytes", LARGE, "", body="\U0001f4a5" * 16_400)


def _tricks() -> Iterator[Case]:
    """What one reader takes for one thing and another reader for another."""
    name = "the same key twice"
    twice = {**_base(name), "title": "last"}
    yield Case(
        name, encoded(twice)[:-1].replace(b'"title": "last"', b'"title": "first"') + b', "title": "last"}', Kept(twice)
    )
    yield Case(
        "an escaped key",
        encoded(_base("an escaped key")).replace(b'"title"', b'"t\\u0069tle"'),
        Kept(_base("an escaped key")),
    )
    zero = _base("minus zero") | {"data": {"a": 0, "b": 1e-300}}
    yield Case("minus zero", encoded(zero).replace(b'"a": 0', b'"a": -0'), Kept(zero))
    yield _bad("unknown field", INVALID, "is_admin", is_admin=True)
    yield _bad("unknown field, prototype", INVALID, "__proto__", __proto__={"is_admin": True})
    yield _bad("unknown field, other case", INVALID, "User_Id", User_Id="admin")
    yield _bad("unknown field, empty", INVALID, "", **{"": "x"})
    yield _bad("10,000 unknown fields", INVALID, "field-0", **{f"field-{n}": n for n in range(10_000)})
    yield _fine("data: keys of objects", data={"__proto__": {"a": 1}, "constructor": {"prototype": {}}, "": "x"})
    yield _fine("data: our own words", data={"user_id": "admin", "aps": {"alert": "x"}, "gcm.x": "y"})


def _nested(levels: int) -> dict[str, Any]:
    """Objects in objects, *levels* of them."""
    made: dict[str, Any] = {"end": True}
    for _ in range(levels - 1):
        made = {"a": made}
    return made
