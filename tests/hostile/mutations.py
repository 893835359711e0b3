"""Bytes that are almost what they were: by byte, by piece, by value."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec

from tests.hostile.corpus import encoded
from tests.hostile.doors import said_in

LONGEST: Final = 100_000
PIECES: Final = (
    *(
        b"\0",
        b"\xff",
        b"\xc0\x80",
        b"\xed\xa0\x80",
        b"\xef\xbb\xbf",
        b"\xf0\x9f\x92",
        b"\\ud800",
        b"\\u0000",
        b"\r\n\r\n",
    ),
    *(b'\\"', b'"', b"{", b"}", b"[" * 2_000, b'{"a":' * 2_000, b",", b":", b"null", b" ", b"/* */", b"%00"),
    *(b"-0", b"1e400", b"NaN", b"9" * 400, b"1.0", b'"userId": "u",', b'"payload": {},'),
    *(b"\r\n\r\n", b"0\r\n\r\n", b"transfer-encoding: chunked\r\n", b"content-length: 0\r\n"),
)
VALUES: Final[tuple[Any, ...]] = (
    *(None, True, False, 0, -1, 1.5, 2**31, 2**53 + 1, 2**63, 2**64, -(2**63) - 1, 10**400),
    *("", "a", "\0", "\ud7ff", "9" * 300, "2030-01-01T00:00:00Z", "0000-00-00T00:00:00Z"),
    *([], {}, [[]], {"": {}}, [None], {"a": [{"b": "c"}]}),
)


def mutated(rng: random.Random, bodies: Sequence[bytes], count: int) -> list[bytes]:
    """So many, each from one or two of *bodies*."""
    return [_once_or_more(rng, bodies) for _ in range(count)]


def _once_or_more(rng: random.Random, bodies: Sequence[bytes]) -> bytes:
    body = rng.choice(bodies)
    for _ in range(rng.choice((1, 1, 2, 5))):
        body = rng.choice(_WAYS)(rng, body, bodies)
    return body[:LONGEST]


def _flipped(rng: random.Random, body: bytes, bodies: Sequence[bytes]) -> bytes:
    made = bytearray(body or b"\0")
    made[rng.randrange(len(made))] = rng.randrange(256)
    return bytes(made)


def _cut(rng: random.Random, body: bytes, bodies: Sequence[bytes]) -> bytes:
    start, end = sorted(rng.randrange(len(body) + 1) for _ in range(2))
    return body[:start] + body[end:]


def _doubled(rng: random.Random, body: bytes, bodies: Sequence[bytes]) -> bytes:
    start, end = sorted(rng.randrange(len(body) + 1) for _ in range(2))
    return body[:end] + body[start:]


def _pierced(rng: random.Random, body: bytes, bodies: Sequence[bytes]) -> bytes:
    at = rng.randrange(len(body) + 1)
    return body[:at] + rng.choice(PIECES) + body[at:]


def _spliced(rng: random.Random, body: bytes, bodies: Sequence[bytes]) -> bytes:
    other = rng.choice(bodies)
    return body[: rng.randrange(len(body) + 1)] + other[rng.randrange(len(other) + 1) :]


def _revalued(rng: random.Random, body: bytes, bodies: Sequence[bytes]) -> bytes:
    """Another value in some field, or another submission's; still an object."""
    said, other = said_in(body), said_in(rng.choice(bodies))
    if not said:
        return body
    field = rng.choice(list(said))
    said[field] = rng.choice(VALUES) if not other or rng.random() < 0.5 else rng.choice(list(other.values()))
    try:
        return encoded(said)
    except (UnicodeEncodeError, msgspec.MsgspecError):
        return body


_WAYS: Final[tuple[Callable[[random.Random, bytes, Sequence[bytes]], bytes], ...]] = (
    _flipped,
    _cut,
    _doubled,
    _pierced,
    _spliced,
    _revalued,
    _revalued,
    _revalued,
)  # fmt: skip - a list of words
