"""The OpenAPI document as generators of clients read it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from waypost.bootstrap import features
from waypost.entrypoints.rest.app import EVERYTHING, openapi_document
from waypost.entrypoints.rest.field_meanings import MEANINGS

DOCUMENT: dict[str, Any] = msgspec.json.decode(openapi_document((), (), EVERYTHING, tuple(features.routes())))


def fields() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Each field of each type."""
    for kind, schema in DOCUMENT["components"]["schemas"].items():
        for name, field in schema.get("properties", {}).items():
            yield kind, name, field


def said(field: dict[str, Any]) -> list[str]:
    """The descriptions of a field, or of what it may be."""
    parts = [field, *(part for key in ("anyOf", "oneOf", "allOf") for part in field.get(key, ()))]
    return [part["description"] for part in parts if "description" in part]


def test_each_field_says_what_it_is() -> None:
    """In words that end as sentences do; and no meaning is left over."""
    silent = [f"{kind}.{name}" for kind, name, field in fields() if not any(said(field))]
    assert silent == []
    assert not MEANINGS.keys() - {name for _, name, _ in fields()}


def test_no_field_has_a_default_that_a_client_would_send() -> None:
    """What holds where a caller is silent may change, and an app's own defaults hold in its place."""
    assert [f"{kind}.{name}" for kind, name, field in fields() if "default" in field] == []
    (urgency,) = [field for kind, name, field in fields() if (kind, name) == ("Submission", "urgency")]
    assert any("normal" in each for each in said(urgency))


@pytest.mark.parametrize("name", ["data", "overrides"])
def test_what_an_app_defines_is_open(name: str) -> None:
    """Any JSON object: a client must not throw away what it does not know."""
    (field,) = [field for kind, each, field in fields() if (kind, each) == ("Submission", name)]
    assert field["additionalProperties"]


def test_there_is_a_server_and_each_call_has_its_problems() -> None:
    """Relative to where the document came from."""
    assert DOCUMENT["servers"][0]["url"] == "/"
    for path in DOCUMENT["paths"].values():
        for operation in path.values():
            assert "default" in operation["responses"]
            assert operation["operationId"] and operation["tags"]


def schemas(within: Any) -> Iterator[dict[str, Any]]:
    """Each object in the document, however deep."""
    if isinstance(within, dict):
        yield within
        within = list(within.values())
    if isinstance(within, list):
        for each in within:
            yield from schemas(each)


def test_an_object_of_anything_says_so() -> None:
    """Also the channels' overrides: TypeScript made a type of it that nothing could be put into."""
    objects = [each for each in schemas(DOCUMENT["components"]) if each.get("type") == "object"]
    assert len(objects) > 50
    assert [each for each in objects if "properties" not in each and "additionalProperties" not in each] == []
