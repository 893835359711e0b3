"""Placeholders: ``{{name}}`` in a bulk job's content, filled in for each recipient: text for text, nothing is run."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from waypost.domain.content import Content
from waypost.domain.errors import Fault

Variables = Mapping[str, str]

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_PLACEHOLDER = re.compile(r"\{\{ *([A-Za-z_][A-Za-z0-9_]{0,63}) *\}\}")
_TEXTS = ("title", "subtitle", "body", "image", "icon", "link")


def names_in(content: Content) -> frozenset[str]:
    """List the variables that *content* asks for."""
    return frozenset(name for _, text in _texts(content) for name in _PLACEHOLDER.findall(text))


def placeholder_faults(content: Content) -> list[Fault]:
    """Find braces that begin no valid placeholder: they would be shown to people as they stand."""
    return [
        Fault(path, "`{{` begins a placeholder such as {{name}}; this is none")
        for path, text in _texts(content)
        if "{{" in _PLACEHOLDER.sub("", text)
    ]


def personalised(content: Content, variables: Variables) -> Content:
    """Replace each placeholder of *content* once: braces that a value brings along stay as they are."""

    def fill(text: str) -> str:
        return _PLACEHOLDER.sub(lambda found: variables.get(found[1], ""), text) if "{{" in text else text

    filled: dict[str, Any] = {name: fill(text) for name in _TEXTS if (text := getattr(content, name))}
    return msgspec.structs.replace(content, data=_filled(content.data, fill), **filled)


def _filled(value: Any, fill: Any) -> Any:
    match value:
        case str():
            return fill(value)
        case dict():
            return {key: _filled(inner, fill) for key, inner in value.items()}
        case list():
            return [_filled(inner, fill) for inner in value]
        case _:
            return value


def _texts(content: Content) -> Iterator[tuple[str, str]]:
    for name in _TEXTS:
        text = getattr(content, name)
        if text:
            yield name, text
    level: list[tuple[str, Any]] = [("data", content.data)]
    while level:
        path, value = level.pop()
        match value:
            case str():
                yield path, value
            case dict():
                level += [(f"{path}.{key}", inner) for key, inner in value.items()]
            case list():
                level += [(f"{path}[{n}]", inner) for n, inner in enumerate(value)]
            case _:
                pass
