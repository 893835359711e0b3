"""The error tree and the stable codes that callers may rely on.

WaypostError
├── InvalidRequest      the request is wrong; carries the path of each fault
├── NotFound            no such thing, or not the caller's
├── Forbidden           the caller has not the scope that it takes
├── Conflict            the request contradicts what is stored
├── Unavailable         refused for now; the same request may succeed later
│   ├── StorageFull
│   └── StorageBroken
└── ConfigurationError  the configuration is wrong; carries the path of the key
"""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from waypost.domain.scope import Scope


class ErrorCode(StrEnum):
    """A code of a problem answer (RFC 9457); the reference explains each (docs/errors.md)."""

    INVALID_REQUEST = "invalid_request"
    INVALID_JSON = "invalid_json"
    INVALID_CURSOR = "invalid_cursor"
    UNAUTHENTICATED = "unauthenticated"
    FORBIDDEN = "forbidden"
    NOT_FOUND = "not_found"
    METHOD_NOT_ALLOWED = "method_not_allowed"
    UNSUPPORTED_MEDIA_TYPE = "unsupported_media_type"
    REQUEST_TIMEOUT = "request_timeout"
    TOO_LARGE = "too_large"
    HEADERS_TOO_LARGE = "headers_too_large"
    IDEMPOTENCY_CONFLICT = "idempotency_conflict"
    IN_PROGRESS = "in_progress"
    NOT_REPLAYABLE = "not_replayable"
    ALREADY_FINAL = "already_final"
    WRONG_STATE = "wrong_state"
    WRONG_CODE = "wrong_code"
    UNKNOWN_TEMPLATE = "unknown_template"
    MISSING_VARIABLE = "missing_variable"
    BACKLOG_FULL = "backlog_full"
    RATE_LIMITED = "rate_limited"
    STORAGE_BUSY = "storage_busy"
    STORAGE_FULL = "storage_full"
    STORAGE_AWAY = "storage_away"
    STORAGE_BROKEN = "storage_broken"
    ARCHIVE_AWAY = "archive_away"
    ISSUER_AWAY = "issuer_away"
    SHUTTING_DOWN = "shutting_down"
    INTERNAL = "internal"


class Fault(Struct, frozen=True):
    """A mistake in a request: where it is, and why it is refused."""

    path: str
    """Such as ``data.items[2]``; "" is the request as a whole."""
    why: str


class WaypostError(Exception):
    """The root of the tree; *code* is stable, the text is for people and never holds secrets or content."""

    code: ErrorCode = ErrorCode.INTERNAL

    def __init__(self, why: str, code: ErrorCode | None = None) -> None:
        super().__init__(why)
        self.code = code or type(self).code


class InvalidRequest(WaypostError):
    """The request is wrong and will be wrong again."""

    code = ErrorCode.INVALID_REQUEST

    def __init__(self, faults: tuple[Fault, ...], code: ErrorCode | None = None) -> None:
        super().__init__("; ".join(f"{fault.path}: {fault.why}" if fault.path else fault.why for fault in faults), code)
        self.faults = faults


class NotFound(WaypostError):
    """The error that there is no such thing, or that it is not the caller's to see."""

    code = ErrorCode.NOT_FOUND


class Forbidden(WaypostError):
    """The caller is known, and may not: *scope* is what is missing."""

    code = ErrorCode.FORBIDDEN

    def __init__(self, scope: Scope) -> None:
        super().__init__(f"this takes the scope {scope}")
        self.scope = scope


class Conflict(WaypostError):
    """The request contradicts what is stored."""

    code = ErrorCode.IDEMPOTENCY_CONFLICT


class Unavailable(WaypostError):
    """The error that a request is refused for now; *retry_after_s* is when to ask again."""

    code = ErrorCode.STORAGE_BUSY

    def __init__(self, why: str, code: ErrorCode | None = None, retry_after_s: int = 1) -> None:
        super().__init__(why, code)
        self.retry_after_s = retry_after_s


class StorageFull(Unavailable):
    """The error that there is no room to accept more; what was accepted goes on."""

    code = ErrorCode.STORAGE_FULL


class StorageBroken(Unavailable):
    """The store cannot be trusted (corrupt, or of a newer version); an operator must act."""

    code = ErrorCode.STORAGE_BROKEN


class ConfigurationError(WaypostError):
    """The configuration is wrong; *path* names the key, such as ``apps.demo.apns.key_file``."""

    def __init__(self, path: str, why: str) -> None:
        super().__init__(f"{path}: {why}" if path else why)
        self.path = path
        self.why = why
