"""The envelope of the user API: every answer under ``/api`` says whether it succeeded."""

from __future__ import annotations

import msgspec
from msgspec import Struct

from waypost.entrypoints.rest.answers import JSON_TYPE
from waypost.entrypoints.rest.problems import Problem

PREFIX = "/api/"


class FailedAnswer(Struct, frozen=True):
    """The reason for a refusal: the same problem as under `/v1`."""

    error: Problem
    success: bool = False


def encode_failed(problem: Problem) -> tuple[bytes, str]:
    """Encode a refusal's body; return it with its media type."""
    return msgspec.json.encode(FailedAnswer(problem)), JSON_TYPE
