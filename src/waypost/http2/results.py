"""What a request can come to: exactly one of three values."""

from dataclasses import dataclass
from typing import NamedTuple

from .hpack import Field


class Answer(NamedTuple):
    """The server's whole answer, whatever its status; interim (1xx) answers are left out."""

    status: int
    headers: tuple[Field, ...]
    body: bytes
    trailers: tuple[Field, ...] = ()


@dataclass(frozen=True)
class Unsent:
    """The server provably took nothing of the request: sending it again cannot make it happen twice."""

    reason: str


@dataclass(frozen=True)
class Unknown:
    """The request was written, at least in part, and no whole answer came: the server may have acted on it."""

    reason: str


Result = Answer | Unsent | Unknown
