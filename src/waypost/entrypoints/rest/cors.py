"""Cross-origin requests (Fetch, section 3.2): which web pages may call, and what their scripts may read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

ORIGIN: Final = b"origin"
_READABLE: Final = (
    b"access-control-expose-headers",
    b"location, retry-after, ratelimit, ratelimit-policy, www-authenticate, x-request-id",
)
_PREFLIGHT: Final = (
    (b"access-control-allow-methods", b"GET, POST, PUT, PATCH, DELETE"),
    (b"access-control-allow-headers", b"authorization, content-type, idempotency-key, x-api-key, x-request-id"),
    (b"access-control-max-age", b"600"),
)

Fields = list[tuple[bytes, bytes]]


def fields_for(scope: Any, origins: Sequence[str]) -> Fields:
    """Return the fields of an answer that let the page read it; none where it is not one of *origins*."""
    if not origins:
        return []
    vary = (b"vary", ORIGIN)
    origin = next((value for name, value in scope["headers"] if name == ORIGIN), None)
    if origin is None or origin.decode("latin-1") not in origins:
        return [vary]
    return [vary, (b"access-control-allow-origin", origin), *(_PREFLIGHT if _asks_first(scope) else (_READABLE,))]


def is_preflight(scope: Any, fields: Fields) -> bool:
    """Tell whether a browser asks before a request that its page may make: that is answered without a credential."""
    return len(fields) > 1 and _asks_first(scope)


def _asks_first(scope: Any) -> bool:
    asked = any(name == b"access-control-request-method" for name, _ in scope["headers"])
    return asked and bool(scope["method"] == "OPTIONS")
