"""Routes of what web pages load: the inbox and its service worker, built from ``sdk/`` into the folder beside."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from litestar import Response, get
from litestar.params import FromPath

from waypost.domain.errors import NotFound
from waypost.entrypoints.rest.answers import speaks

_FOLDER = Path(__file__).parent / "sdk"
_NAMES = frozenset({"inbox.js", "worker.js"})
_HEADERS = {
    "cross-origin-resource-policy": "cross-origin",  # a service worker of another origin takes it in
    "x-content-type-options": "nosniff",
    "cache-control": "max-age=3600",
}


@get("/sdk/{name:str}", opt=speaks({}, None), include_in_schema=False)
async def sdk(name: FromPath[str]) -> Response[bytes]:
    """Return a script for web pages."""
    if name not in _NAMES:
        raise NotFound("no such file")
    return Response(_read(name), media_type="text/javascript; charset=utf-8", headers=_HEADERS)


@cache
def _read(name: str) -> bytes:
    return (_FOLDER / name).read_bytes()


ROUTES = [sdk]
