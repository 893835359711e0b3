"""What may stand in a path, a query or a cursor and mean no good, percent-encoded as it goes over the wire."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import quote

from tests.hostile.texts import TEXTS

VALUES: Final[dict[str, str]] = {
    "nothing": "",
    "NUL": "a%00",
    "nothing but NUL": "%00",
    "invalid UTF-8": "%ff%fe",
    "overlong UTF-8": "%c0%80",
    "lone surrogate": "%ed%a0%80",
    "surrogates as two": "%ed%a0%bd%ed%b2%a5",
    "half a character": "%f0%9f",
    "no percent-encoding": "%zz%",
    "encoded twice": "%2500",
    "line break": "a%0d%0aX-Evil:%201",
    "over-long": "a" * 300,
    "far too long": "a" * 20_000,
    "over-long in bytes": "%f0%9f%92%a5" * 128,
    "minus one": "-1",
    "zero": "0",
    "wider than 64 bits": "99999999999999999999",
    "4,500 digits": "9" * 4_500,
    "float": "1e9",
    "not a number": "NaN",
    "digits of another script": "%d9%a3",
    "underscores": "1_0",
    "null": "null",
    "true": "true",
    "a list": "[]",
    "an id of another kind": "00000000-0000-0000-0000-000000000000",
    "year 10000": "10000-01-01T00:00:00Z",
    **{f"text: {name}": quote(text.said, safe="") for name, text in TEXTS.items()},
}
"""By what they are."""


def cursors(genuine: str) -> Iterator[str]:
    """*genuine* as somebody may have changed it, and what was made up."""
    yield from (genuine[:n] for n in range(1, len(genuine)))
    yield from (f"{genuine[:n]}{letter}{genuine[n + 1 :]}" for n in range(len(genuine)) for letter in "A_9%")
    yield from (genuine + rest for rest in ("A", "=", "==", "%00", "%0a", "%20", "%c3%a9", genuine))
    for byte in (b"\x00", b"\x7f", b"\x80", b"\xff"):
        yield from (base64.urlsafe_b64encode(byte * size).decode().rstrip("=") for size in range(1, 42))
    yield from (value for value in VALUES.values() if value)


def operations(document: dict[str, Any]) -> Iterator[tuple[str, str, list[dict[str, Any]]]]:
    """Each operation of the API's own document, so that a new one is asked, too: method, path and parameters."""
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield method, path, operation.get("parameters", [])
