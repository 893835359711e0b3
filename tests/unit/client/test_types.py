"""The types of the client are those of the API's own document, field by field."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, get_args, get_origin, get_type_hints, is_typeddict

import pytest
import schemathesis

from tests.adapters.rest.service import Service
from waypost.client import types

TYPES = [each for each in vars(types).values() if is_typeddict(each)]
Schemas = dict[str, Any]


@pytest.fixture(scope="module")
def schemas() -> Schemas:
    document = schemathesis.openapi.from_asgi("/openapi.json", Service().app, timeout=60).raw_schema
    found: Schemas = document["components"]["schemas"]
    return found


@pytest.mark.parametrize("typed", TYPES, ids=lambda typed: typed.__name__)
def test_a_type_has_the_fields_of_the_document(typed: Any, schemas: Schemas) -> None:
    documented = schemas[typed.__name__]
    assert set(typed.__annotations__) == set(documented["properties"])
    assert typed.__required_keys__ == set(documented.get("required", []))


def test_a_choice_has_the_words_of_the_document(schemas: Schemas) -> None:
    seen = set()
    for typed in TYPES:
        for name, hint in get_type_hints(typed).items():
            for words in choices(hint):
                documented = schemas[typed.__name__]["properties"][name]
                assert words in [_words(each, schemas) for each in documented.get("anyOf", [documented])], name
                seen.add(name)
    assert {"status", "urgency", "guarantee", "failure_class"} <= seen


def _words(documented: dict[str, Any], schemas: Schemas) -> set[str] | None:
    """Return the closed list of words that a schema has, its own or one that it refers to."""
    referred = documented.get("$ref", "").rpartition("/")[2]
    return set((schemas[referred] if referred else documented).get("enum", ())) - {None} or None


def choices(hint: Any) -> Iterator[set[str]]:
    """The closed lists of words in a type."""
    if get_origin(hint) is Literal:
        yield set(get_args(hint))
        return
    for part in get_args(hint):
        yield from choices(part)
