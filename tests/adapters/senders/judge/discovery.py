"""Judges JSON by the schemas of a Google discovery document, as strictly as they can be read.

Sources: developers.google.com, "Discovery: Type and Format Summary"; protobuf.dev, "ProtoJSON Format" (a field may be
written in snake_case or in lowerCamelCase, a map's keys are the sender's own).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any

Schema = dict[str, Any]

_DURATION = re.compile(r"-?\d+(\.\d{1,9})?s")
_RANGES = {"int32": (-(2**31), 2**31 - 1), "uint32": (0, 2**32 - 1)}


class Discovery:
    """The schemas of one document."""

    def __init__(self, document: dict[str, Any]) -> None:
        self.revision: str = document["revision"]
        self._schemas: dict[str, Schema] = document["schemas"]

    def faults(self, name: str, value: object) -> list[str]:
        """What the schema *name* does not allow in *value*, with the path of each."""
        return list(self._of(self._schemas[name], value, name))

    def _of(self, schema: Schema, value: object, path: str) -> Iterator[str]:
        if "$ref" in schema:
            schema = self._schemas[schema["$ref"]]
        if schema.get("readOnly"):
            yield f"{path} is for answers"
        match schema["type"], value:
            case ("any", _) | ("boolean", bool()):
                pass
            case "object", dict():
                yield from self._of_object(schema, value, path)
            case "array", list():
                for n, item in enumerate(value):
                    yield from self._of(schema["items"], item, f"{path}[{n}]")
            case "string", str():
                yield from _of_text(schema, value, path)
            case "integer" | "number", int() | float() if not isinstance(value, bool):
                yield from _of_number(schema, value, path)
            case kind, _:
                yield f"{path} is no {kind}"

    def _of_object(self, schema: Schema, value: dict[str, Any], path: str) -> Iterator[str]:
        if "additionalProperties" in schema:
            for key, item in value.items():
                yield from self._of(schema["additionalProperties"], item, f"{path}.{key}")
            return
        fields: dict[str, Schema] = schema.get("properties", {})
        seen: set[str] = set()
        for key, item in value.items():
            name = _camel(key)
            if name not in fields:
                yield f"{path}.{key} is unknown"
            elif name in seen:
                yield f"{path}.{key} is given twice"
            else:
                yield from self._of(fields[name], item, f"{path}.{key}")
            seen.add(name)


def _of_number(schema: Schema, value: float, path: str) -> Iterator[str]:
    if schema["type"] == "integer":
        lowest, highest = _RANGES[schema["format"]]
        if value != int(value) or not lowest <= value <= highest:
            yield f"{path} is no {schema['format']}"


def _of_text(schema: Schema, value: str, path: str) -> Iterator[str]:
    if "enum" in schema and value not in schema["enum"]:
        yield f"{path} is none of {', '.join(schema['enum'])}"
    match schema.get("format"):
        case None:
            pass
        case "google-duration":
            if not _DURATION.fullmatch(value):
                yield f"{path} is no duration"
        case "google-datetime":
            try:
                datetime.fromisoformat(value)
            except ValueError:
                yield f"{path} is no time"
        case other:
            raise NotImplementedError(other)


def _camel(key: str) -> str:
    first, *others = key.split("_")
    return first + "".join(other.capitalize() for other in others)
