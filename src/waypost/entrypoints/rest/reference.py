"""The OpenAPI 3.1 document, and a page to read it that needs no network."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from http import HTTPStatus
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import msgspec
from litestar import Litestar, Response, get
from litestar.handlers import HTTPRouteHandler
from litestar.openapi.config import OpenAPIConfig
from litestar.params import FromPath

from waypost import __version__
from waypost.domain.errors import ErrorCode, NotFound
from waypost.entrypoints.rest.answers import JSON_TYPE, Spoken
from waypost.entrypoints.rest.api import Call
from waypost.entrypoints.rest.parameters import PATH_KINDS
from waypost.entrypoints.rest.problems import PROBLEM_TYPE, STATUS_OF, Problem

DESCRIPTION = """
Tell a user something, and every device of theirs gets it: durably, once, on time.

Every call but health and metrics takes an API key: `Authorization: Bearer wp_…` (make one with `waypost keys create`).
Errors are problems (RFC 9457) with a stable `code`; `faults` name the wrong fields.
"""
TAGS = {
    "Notifications": "Submit, look up, cancel, replay.",
    "Dead letters": "Deliveries that failed for good and were kept.",
    "Devices": "Where a user can be reached.",
    "Operation": "Health and metrics.",
}
COMMON_CODES = (ErrorCode.INVALID_REQUEST, ErrorCode.UNAUTHENTICATED)
_REF = "#/components/schemas/{name}"


def specification(routes: Sequence[HTTPRouteHandler]) -> bytes:
    """The OpenAPI document of *routes*: paths and parameters as routed, bodies exactly as they are decoded."""
    config = OpenAPIConfig(
        title="Waypost", version=__version__, description=DESCRIPTION.strip(), use_handler_docstrings=True
    )
    described = Litestar(route_handlers=list(routes), openapi_config=config, logging_config=None)
    document = described.openapi_schema.to_schema()
    spoken = {str(route.operation_id): _spoken(route) for route in routes}
    kinds = [kind for each in spoken.values() for kind in (*each.answers.values(), each.body)]
    unique = list(dict.fromkeys(kind for kind in (*kinds, Problem) if kind not in (None, str)))
    schemas, components = msgspec.json.schema_components(unique, ref_template=_REF)
    by_kind = dict(zip(unique, schemas, strict=True))
    for path in document["paths"].values():
        for operation in path.values():
            _describe(operation, spoken[operation["operationId"]], by_kind)
    document["components"] = {
        "schemas": components,
        "securitySchemes": {"key": {"type": "http", "scheme": "bearer", "description": "An API key."}},
    }
    document["tags"] = [{"name": name, "description": text} for name, text in TAGS.items()]
    document["servers"] = [{"url": "/"}]
    return msgspec.json.encode(document)


def _spoken(route: HTTPRouteHandler) -> Spoken:
    spoken: Spoken = route.opt["spoken"]
    return spoken


def _describe(operation: dict[str, Any], spoken: Spoken, by_kind: dict[Any, dict[str, Any]]) -> None:
    operation["responses"] = {
        **{str(status): _response(status, kind, by_kind) for status, kind in spoken.answers.items()},
        **_problems(spoken, by_kind[Problem]),
    }
    for parameter in operation.get("parameters") or ():
        if parameter["in"] == "path":
            parameter["schema"] = msgspec.json.schema(PATH_KINDS[parameter["name"]])
    operation["security"] = [] if spoken.public else [{"key": []}]
    operation.pop("deprecated", None)
    if spoken.body is not None:
        content = {JSON_TYPE: {"schema": by_kind[spoken.body]}}
        operation["requestBody"] = {"required": spoken.body_required, "content": content}


def _response(status: int, kind: Any, by_kind: dict[Any, dict[str, Any]]) -> dict[str, Any]:
    description = HTTPStatus(status).phrase
    if kind is None:
        return {"description": description}
    if kind is str:
        return {"description": description, "content": {"text/plain": {"schema": {"type": "string"}}}}
    return {"description": description, "content": {JSON_TYPE: {"schema": by_kind[kind]}}}


def _problems(spoken: Spoken, schema: dict[str, Any]) -> dict[str, Any]:
    content = {PROBLEM_TYPE: {"schema": schema}}
    by_status: dict[int, list[str]] = {}
    for code in (*(() if spoken.public else COMMON_CODES), *spoken.codes):
        by_status.setdefault(STATUS_OF[code], []).append(f"`{code}`")
    named = {
        str(status): {"description": " or ".join(codes), "content": content}
        for status, codes in sorted(by_status.items())
    }
    return {**named, "default": {"description": "Any other problem.", "content": content}}


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


@get("/openapi.json", include_in_schema=False)
async def document(request: Call) -> Response[bytes]:
    """The OpenAPI document."""
    return Response(request.app.state.document, media_type=JSON_TYPE)


@get("/docs", include_in_schema=False)
async def page() -> Response[str]:
    """The reference page."""
    return Response(PAGE, media_type="text/html", headers=_PAGE_HEADERS)


@get("/docs/{name:str}", include_in_schema=False)
async def asset(name: FromPath[str]) -> Response[bytes]:
    """A part of the reference page, out of an installed package."""
    if name == "start.js":
        return Response(START.encode(), media_type="text/javascript", headers=_PAGE_HEADERS)
    if name not in _ASSETS:
        raise NotFound("no such page")
    file, media_type = _ASSETS[name]
    return Response(_bundled(file), media_type=media_type, headers={**_PAGE_HEADERS, "cache-control": "max-age=86400"})


@cache
def _bundled(file: str) -> bytes:
    """A file of the package that carries Swagger UI; importing that package would read all it has."""
    return Path(str(distribution("offapi").locate_file(f"offapi/{file}"))).read_bytes()


ROUTES = [document, page, asset]
