"""The result of a request: exactly one of three values."""

from dataclasses import dataclass
from enum import Enum
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


class Lost(Enum):
    """The way in which the answer of an `Unknown` was lost; the values are fit for logs and metrics."""

    TIMEOUT = "timeout"  # the deadline passed
    RESET = "reset"  # the server ended the stream
    CONNECTION_LOST = "connection_lost"  # the connection ended first, by whomever
    BAD_ANSWER = "bad_answer"  # it broke the protocol's rules, or was larger than asked for


@dataclass(frozen=True)
class Unknown:
    """The request was written, at least in part, and no whole answer came: the server may have acted on it."""

    reason: str
    kind: Lost = Lost.CONNECTION_LOST


Result = Answer | Unsent | Unknown
