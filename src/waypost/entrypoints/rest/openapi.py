"""The OpenAPI 3.1 document: paths and parameters as routed, bodies exactly as they are decoded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

import msgspec
from litestar import Litestar
from litestar.handlers import HTTPRouteHandler
from litestar.openapi.config import OpenAPIConfig

from waypost import __version__
from waypost.domain.errors import ErrorCode, WaypostError
from waypost.entrypoints.access import Access
from waypost.entrypoints.rest.answers import JSON_TYPE, Spoken, spoken_of
from waypost.entrypoints.rest.compat.envelope import FailedAnswer
from waypost.entrypoints.rest.field_meanings import MEANINGS
from waypost.entrypoints.rest.parameters import PATH_KINDS
from waypost.entrypoints.rest.problems import PROBLEM_TYPE, STATUS_OF, Problem, problem_of

DESCRIPTION = """
Tell a user something, and every device of theirs gets it: durably, once, on time.

Every call except health and metrics needs `Authorization: Bearer …` with an API key (create one with `waypost keys
create`) or a token of a configured issuer. Each call names the scope that it needs; end users' tokens reach only what
belongs to them.
Errors are problems (RFC 9457) with a stable `code`; `faults` name the wrong fields.
"""
TAGS = {
    "Notifications": "Submit, look up, cancel, replay.",
    "Dead letters": "Deliveries that failed for good and were kept.",
    "Devices": "Where a user can be reached.",
    "Other APIs": "Calls of other products, served as their callers know them; each can be switched off.",
    "Operation": "Health and metrics.",
}
_RATE_HEADERS = {
    "Retry-After": ("integer", "Seconds until the same request may succeed."),
    "RateLimit-Policy": (
        "string",
        'The limit: its name, how much (`q`) in how many seconds (`w`), `"caller";q=100;w=60`.',
    ),
    "RateLimit": ("string", 'What is left of it (`r`), and until when (`t`, seconds), `"caller";r=0;t=12`.'),
}
"""The headers of an answer to who is over a limit (draft-ietf-httpapi-ratelimit-headers)."""
COMMON_CODES = (ErrorCode.INVALID_REQUEST, ErrorCode.UNAUTHENTICATED, ErrorCode.FORBIDDEN, ErrorCode.RATE_LIMITED)
SECURITY_SCHEMES = {
    "key": {"type": "http", "scheme": "bearer", "description": "An API key, `wp_…`; or in the header `X-API-Key`."},
    "token": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT", "description": "A token of a service."},
    "user": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT", "description": "A token of an end user."},
}
_REF = "#/components/schemas/{name}"


def specification(
    routes: Sequence[HTTPRouteHandler], words: Mapping[str, Sequence[str]], tags: Mapping[str, str]
) -> bytes:
    """Build the OpenAPI document of *routes*; *words* are schemas that name what there is, such as every platform.

    *tags* are chapters beside those that are always there.
    """
    config = OpenAPIConfig(
        title="Waypost", version=__version__, description=DESCRIPTION.strip(), use_handler_docstrings=True
    )
    described = Litestar(route_handlers=list(routes), openapi_config=config, logging_config=None)
    document = described.openapi_schema.to_schema()
    spoken = {str(route.operation_id): spoken_of(route) for route in routes}
    kinds = [kind for each in spoken.values() for kind in (*each.answers.values(), each.body)]
    unique = list(dict.fromkeys(kind for kind in (*kinds, Problem, FailedAnswer) if kind not in (None, str)))
    schemas, components = msgspec.json.schema_components(unique, ref_template=_REF)
    by_kind = dict(zip(unique, schemas, strict=True))
    for title, component in components.items():
        for name, field in component.get("properties", {}).items():
            _explain(name, _without_itself(field, _REF.format(name=title)))
    for path in document["paths"].values():
        for operation in path.values():
            _describe(operation, spoken[operation["operationId"]], by_kind)
    of_parameters = document["components"].get("schemas", {})
    document["paths"] = _in_order(document["paths"], list(spoken))
    document["components"] = {
        "schemas": of_parameters
        | components
        | {name: {"type": "string", "enum": choice} for name, choice in words.items()},
        "securitySchemes": SECURITY_SCHEMES,
    }
    document["tags"] = [{"name": name, "description": text} for name, text in (TAGS | dict(tags)).items()]
    document["servers"] = [{"url": "/", "description": "The server that this document came from."}]
    return msgspec.json.encode(document)


def _without_itself(schema: dict[str, Any], reference: str) -> dict[str, Any]:
    """Put an object of anything in the place of a type inside of itself: readers need not go round in circles."""
    if schema.get("$ref") == reference:
        del schema["$ref"]
        schema |= {"type": "object", "additionalProperties": True, "description": "One as this one."}
    for inner in (schema.get("items"), *schema.get("anyOf", ())):
        if isinstance(inner, dict):
            _without_itself(inner, reference)
    return schema


def _explain(name: str, field: dict[str, Any]) -> None:
    """Describe a field, and say its default in words: as a default, generated clients would send it each time."""
    alternatives = [part for key in ("anyOf", "oneOf", "allOf") for part in field.get(key, ())]
    if not any("description" in each for each in (field, *alternatives)):
        field["description"] = MEANINGS.get(name, "")
    default = field.pop("default", None)
    if default and isinstance(default, str | int | float):
        field["description"] = f"{field.get('description', MEANINGS.get(name, ''))} Default: `{default}`.".lstrip()
    _open(field)


def _open(schema: dict[str, Any]) -> None:
    """Say of an object of anything that it takes anything, also within another: generators read silence as nothing."""
    if schema.get("type") == "object" and "properties" not in schema:
        within = schema.setdefault("additionalProperties", True)
        if isinstance(within, dict):
            _open(within)
    for one in schema.get("anyOf", ()):
        _open(one)


def _describe(operation: dict[str, Any], spoken: Spoken, by_kind: dict[Any, dict[str, Any]]) -> None:
    operation["responses"] = {
        **{str(status): _response(spoken, status, by_kind) for status in sorted(spoken.answers)},
        **_problems(spoken, by_kind),
    }
    for parameter in operation.get("parameters") or ():
        _correct(parameter)
    operation["security"] = _security(spoken.access)
    operation.pop("deprecated", None)
    if spoken.body is not None:
        content = {JSON_TYPE: {"schema": by_kind[spoken.body], "example": spoken.example}}
        operation["requestBody"] = {"required": spoken.body_required, "content": content}


def _common(access: Access | None) -> tuple[ErrorCode, ...]:
    if access is None:
        return ()
    return (*COMMON_CODES, ErrorCode.NOT_FOUND) if access.users else COMMON_CODES


def _security(access: Access | None) -> list[dict[str, list[str]]]:
    """List the security schemes, any of which will do, with their scope (OpenAPI 3.1, Security Requirement Object)."""
    if access is None:
        return []
    return [{name: [access.scope.value]} for name in SECURITY_SCHEMES if access.users or name != "user"]


def _correct(parameter: dict[str, Any]) -> None:
    """Correct a parameter as it is read: path parts get their own types, others lose a null that none can write."""
    if parameter["in"] == "path":
        parameter["schema"] = msgspec.json.schema(PATH_KINDS[parameter["name"]])
    alternatives = parameter["schema"].get("oneOf")
    if alternatives:
        (parameter["schema"],) = [each for each in alternatives if each.get("type") != "null"]


def _in_order(paths: dict[str, Any], operation_ids: list[str]) -> dict[str, Any]:
    """Sort paths and their operations in the order of the routes, the order to read them in."""

    def place(operation: dict[str, Any]) -> int:
        return operation_ids.index(operation["operationId"])

    inner = {
        path: dict(sorted(operations.items(), key=lambda each: place(each[1]))) for path, operations in paths.items()
    }
    return dict(sorted(inner.items(), key=lambda each: min(place(operation) for operation in each[1].values())))


def _response(spoken: Spoken, status: int, by_kind: dict[Any, dict[str, Any]]) -> dict[str, Any]:
    kind = spoken.answers[status]
    description = spoken.meanings.get(status, HTTPStatus(status).phrase)
    if kind is None:
        return {"description": description}
    if kind is str:
        return {"description": description, "content": {"text/plain": {"schema": {"type": "string"}}}}
    shown = {"example": spoken.shown[status]} if status in spoken.shown else {}
    return {"description": description, "content": {JSON_TYPE: {"schema": by_kind[kind], **shown}}}


def _problems(spoken: Spoken, by_kind: dict[Any, dict[str, Any]]) -> dict[str, Any]:
    by_status: dict[int, list[ErrorCode]] = {}
    for code in dict.fromkeys((*_common(spoken.access), *spoken.codes)):
        by_status.setdefault(STATUS_OF[code], []).append(code)
    described = _enveloped if spoken.enveloped else _problem
    named = {
        str(status): described(" or ".join(f"`{code}`" for code in codes), codes[0], by_kind)
        for status, codes in sorted(by_status.items())
    }
    if ErrorCode.RATE_LIMITED in by_status.get(429, ()):
        named["429"]["headers"] = {
            name: {"description": meaning, "schema": {"type": kind}} for name, (kind, meaning) in _RATE_HEADERS.items()
        }
    return {**named, "default": described("Any other problem.", ErrorCode.INTERNAL, by_kind)}


def _problem(description: str, code: ErrorCode, by_kind: dict[Any, dict[str, Any]]) -> dict[str, Any]:
    """Describe a problem answer, with *code* as its example."""
    content = {"schema": by_kind[Problem], "example": _example(code)}
    return {"description": description, "content": {PROBLEM_TYPE: content}}


def _enveloped(description: str, code: ErrorCode, by_kind: dict[Any, dict[str, Any]]) -> dict[str, Any]:
    content = {"schema": by_kind[FailedAnswer], "example": FailedAnswer(_example(code))}
    return {"description": description, "content": {JSON_TYPE: content}}


def _example(code: ErrorCode) -> Problem:
    return problem_of(WaypostError("why, in words for people", code))
