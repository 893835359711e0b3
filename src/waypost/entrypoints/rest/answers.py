"""The answers of handlers, and their description in the reference."""

from __future__ import annotations

from typing import Any

import msgspec
from litestar import Response
from litestar.handlers import HTTPRouteHandler
from litestar.handlers.base import BaseRouteHandler
from msgspec import Struct

from waypost.domain.errors import ErrorCode
from waypost.entrypoints.access import Access

JSON_TYPE = "application/json"

encode = msgspec.json.Encoder().encode


class Spoken(Struct, frozen=True):
    """The input and answers of an operation, for the OpenAPI document."""

    answers: dict[int, Any]
    """The body's type by status; None is no body, str is plain text."""
    access: Access | None
    """Who may call it; None is anybody."""
    body: Any = None
    body_required: bool = True
    example: Any = None
    """A body worth starting from."""
    shown: dict[int, Any] = {}
    """An example of an answer, by status, where the schema's own examples would make no sense together."""
    meanings: dict[int, str] = {}
    """The meaning of a status here, where its own words do not say it."""
    codes: tuple[ErrorCode, ...] = ()
    """The refusals particular to this operation."""
    enveloped: bool = False
    """Whether refusals come in the envelope of ``/api``."""


WRITE_CODES = (ErrorCode.STORAGE_BUSY, ErrorCode.STORAGE_FULL, ErrorCode.SHUTTING_DOWN)
"""The error codes of every call that writes."""
INTAKE_CODES = (ErrorCode.TOO_LARGE, ErrorCode.BACKLOG_FULL, *WRITE_CODES)
"""The error codes of every call that takes notifications in."""
ONE_CODES = (ErrorCode.IDEMPOTENCY_CONFLICT, ErrorCode.IN_PROGRESS, *INTAKE_CODES)
"""The error codes of those that take one notification, which may have a key."""


def speaks(answers: dict[int, Any], access: Access | None, **more: Any) -> dict[str, Any]:
    """Build the ``opt`` of a handler, with its answers and who may call it: see Spoken."""
    return {"spoken": Spoken(answers, access, **more)}


def spoken_of(handler: BaseRouteHandler) -> Spoken:
    """Return what a handler declares; one that declares nothing is a KeyError, and answers nobody.

    Those that the framework adds for OPTIONS declare nothing, and tell no more than the methods of a path.
    """
    if isinstance(handler, HTTPRouteHandler) and handler.http_methods == {"OPTIONS"}:
        return _METHODS
    spoken: Spoken = handler.opt["spoken"]
    return spoken


_METHODS = Spoken({204: None}, None)


def answer(status: int, body: Struct) -> Response[bytes]:
    """Build a JSON answer."""
    return Response(encode(body), status_code=status, media_type=JSON_TYPE)
