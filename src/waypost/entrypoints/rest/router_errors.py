"""The errors that the router raises by itself, in our words."""

from __future__ import annotations

from litestar.exceptions import HTTPException, MethodNotAllowedException, NotFoundException, ValidationException

from waypost.domain.errors import ErrorCode, Fault, InvalidRequest, NotFound, WaypostError
from waypost.entrypoints.rest.problems import RequestRefused
from waypost.entrypoints.wording import in_json


def foreseen_error(error: Exception) -> WaypostError | None:
    """Return the error to answer with; None where *error* was not foreseen."""
    match error:
        case WaypostError():
            return None if error.code is ErrorCode.INTERNAL else error
        case NotFoundException():
            return NotFound("no such route")
        case MethodNotAllowedException():
            allow = (error.headers or {}).get("allow", "")
            return RequestRefused(ErrorCode.METHOD_NOT_ALLOWED, f"this route takes {allow}", (("allow", allow),))
        case ValidationException():
            return InvalidRequest(tuple(_fault(each) for each in error.extra or ()) or (Fault("", "not valid"),))
        case HTTPException() if error.status_code < 500:
            return InvalidRequest((Fault("", "not a valid request"),))
        case _:
            return None


def _fault(extra: object) -> Fault:
    if not isinstance(extra, dict):
        return Fault("", "not valid")
    return Fault(str(extra.get("key", "")), in_json(str(extra.get("message", "not valid"))))
