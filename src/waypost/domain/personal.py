"""What one recipient is told: a variant, and ``{{name}}`` filled in for each: text for text, nothing is run."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from waypost.domain.content import Content
from waypost.domain.errors import Fault
from waypost.domain.variants import VARIANT, VARIED, Variant

Variables = Mapping[str, str]

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_PLACEHOLDER = re.compile(r"\{\{ *([A-Za-z_][A-Za-z0-9_]{0,63}) *\}\}")


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
    """Choose the variant, and replace each placeholder once: braces that a value brings along stay as they are.

    What a template says gets *variables* as its own. Without a variant among them all variants stay, filled.
    """
    if content.split is not None and (chosen := variables.get(VARIANT)) is not None:
        content = of_variant(content, chosen)
        if len(variables) == 1:
            return content

    def fill(text: str) -> str:
        return _PLACEHOLDER.sub(lambda found: variables.get(found[1], ""), text) if "{{" in text else text

    filled = _texts_filled(content, fill)
    if content.split is not None:
        variants = tuple(replace(each, **_texts_filled(each, fill)) for each in content.split.variants)
        filled["split"] = replace(content.split, variants=variants)
    use = content.template
    if use is not None:
        own = {name: value for name, value in variables.items() if name != VARIANT}
        filled["template"] = replace(use, variables={**use.variables, **own})
    return replace(content, data=_filled(content.data, fill), **filled)


def of_variant(content: Content, variant: str) -> Content:
    """Return what *content* says to those of one variant; its own texts where it has none of that name."""
    own = next((each for each in content.split.variants if each.name == variant), None) if content.split else None
    texts = {} if own is None else {name: text for name in VARIED if (text := getattr(own, name)) is not None}
    return replace(content, split=None, variant=variant, **texts)


def _texts_filled(said: Content | Variant, fill: Callable[[str], str]) -> dict[str, Any]:
    return {name: fill(text) for name in VARIED if (text := getattr(said, name))}


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
    variants = () if content.split is None else content.split.variants
    for at, said in (("", content), *((f"variants[{n}].", each) for n, each in enumerate(variants))):
        yield from ((f"{at}{name}", text) for name in VARIED if (text := getattr(said, name)))
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
