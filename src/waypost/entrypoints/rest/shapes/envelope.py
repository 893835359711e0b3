"""The envelope of S3: whatever is answered under ``/api`` says whether it succeeded."""

from __future__ import annotations

import msgspec
from msgspec import Struct

from waypost.entrypoints.rest.answers import JSON_TYPE
from waypost.entrypoints.rest.problems import Problem

PREFIX = "/api/"


class Failed(Struct, frozen=True):
    """Why a request was refused: the problem that the same mistake is under `/v1`."""

    error: Problem
    success: bool = False


def encode_failed(problem: Problem) -> tuple[bytes, str]:
    """A refusal's body, and its media type."""
    return msgspec.json.encode(Failed(problem)), JSON_TYPE
