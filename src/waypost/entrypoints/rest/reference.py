"""A page to read the OpenAPI document with, that needs no network."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import cache
from importlib.metadata import distribution
from pathlib import Path

from litestar import Response, get
from litestar.params import FromPath
from litestar.response import Redirect

from waypost.domain.errors import NotFound
from waypost.entrypoints.rest.answers import JSON_TYPE, speaks
from waypost.entrypoints.rest.api import DOCUMENT, Call

_ASSETS = {
    "swagger.js": ("swagger_bundle.js", "text/javascript; charset=utf-8"),
    "swagger.css": ("swagger_style.css", "text/css; charset=utf-8"),
}

PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Waypost API</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="/docs/swagger.css">
</head>
<body>
<div id="reference"></div>
<script src="/docs/swagger.js"></script>
<script src="/docs/start.js"></script>
</body>
</html>
"""

START = """SwaggerUIBundle({
  url: "/openapi.json",
  dom_id: "#reference",
  deepLinking: true,
  defaultModelsExpandDepth: 0,
  displayRequestDuration: true,
  persistAuthorization: false,
  tryItOutEnabled: true,
  validatorUrl: null,
});
"""

_PAGE_HEADERS = {
    "content-security-policy": "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:",
    "x-content-type-options": "nosniff",
}


ANYBODY = speaks({}, None)


@get("/openapi.json", opt=ANYBODY, include_in_schema=False)
async def document(request: Call) -> Response[bytes]:
    """Return the OpenAPI document."""
    made: Callable[[], bytes] = request.scope[DOCUMENT]  # type: ignore[typeddict-item] # a key of ours
    return Response(await asyncio.to_thread(made), media_type=JSON_TYPE)


@get("/", opt=ANYBODY, include_in_schema=False, status_code=307)
async def front() -> Redirect:
    """Redirect to the reference: who opens the API's own address wants to read about it."""
    return Redirect("/docs", status_code=307)


@get("/docs", opt=ANYBODY, include_in_schema=False)
async def page() -> Response[str]:
    """Return the reference page."""
    return Response(PAGE, media_type="text/html", headers=_PAGE_HEADERS)


@get("/docs/{name:str}", opt=ANYBODY, include_in_schema=False)
async def asset(name: FromPath[str]) -> Response[bytes]:
    """Return a part of the reference page, out of an installed package."""
    if name == "start.js":
        return Response(START.encode(), media_type="text/javascript", headers=_PAGE_HEADERS)
    if name not in _ASSETS:
        raise NotFound("no such page")
    file, media_type = _ASSETS[name]
    return Response(_bundled(file), media_type=media_type, headers={**_PAGE_HEADERS, "cache-control": "max-age=86400"})


@cache
def _bundled(file: str) -> bytes:
    """Read a file of the package that carries Swagger UI, without importing it: that would read all it has."""
    return Path(str(distribution("offapi").locate_file(f"offapi/{file}"))).read_bytes()


ROUTES = [document, front, page, asset]
