"""Faults of decoded values in the words of JSON: what is expected there, what is allowed, and what was probably meant.

A suggestion is one of the names known here; nothing that was sent is quoted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import get_close_matches
from typing import Any, Final

import msgspec
from msgspec import inspect

from waypost.domain.errors import Fault
from waypost.domain.submission import NO_CONTROLS
from waypost.domain.text import FORM, NO_NUL

_AT: Final = re.compile(r" - at `(?:key` in `)?\$(.*)`$", re.DOTALL)
_FIELD: Final = re.compile(r"Object (missing required|contains unknown) field `(.*)`$", re.DOTALL)
_WORD: Final = re.compile(r"Invalid enum value (.*)$", re.DOTALL)
_FORM: Final = re.compile(r"Expected `str` matching regex '.*'$", re.DOTALL)
_LENGTH: Final = re.compile(r"Expected `str` of length .*$", re.DOTALL)
_MOMENT: Final = re.compile(r"Invalid RFC3339 encoded datetime|Expected `datetime` with a timezone component")
_EXPECTED: Final = re.compile(r"Expected `([^`]+)`(.*?)(?:, got `([^`]+)`)?$", re.DOTALL)
_FORMS: Final = {NO_NUL: "must have no NUL character", NO_CONTROLS: "must have no control characters"}
_STEP: Final = re.compile(r"\.([^.\[\]]+)|\[(?:\d+|\.\.\.)\]")
_JSON: Final = {
    "str": "a string",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "object": "an object",
    "array": "an array",
}
_GIVEN: Final = _JSON | {"float": "a number with a fraction", "bool": "a truth value"}


def fault_of(error: msgspec.ValidationError, kind: Any, at: str = "") -> Fault:
    """Say where a value of *kind* is wrong and why; *at* is the path of the whole."""
    text = str(error)
    found = _AT.search(text)
    where, why = (found[1], text[: found.start()]) if found else ("", text)
    parts = [at, where.lstrip(".")]
    if field := _FIELD.fullmatch(why):
        parts.append(field[2])
        why = "required" if field[1].startswith("missing") else f"unknown field{_meant(field[2], _fields(kind, where))}"
    elif word := _WORD.fullmatch(why):
        allowed = _words(kind, where)
        why = f"not one of {', '.join(allowed)}{_meant(word[1].strip(chr(39)), allowed)}"
    elif _FORM.fullmatch(why):
        why = next(_forms(kind, where), why)
    elif _LENGTH.fullmatch(why):
        why = next(_own_forms(kind, where), why)
    elif _MOMENT.fullmatch(why):
        why = 'must be a time with its zone (RFC 3339), such as "2026-12-01T09:00:00Z"'
    return Fault(".".join(filter(None, parts)).replace(".[", "["), in_json(why))


def in_json(why: str) -> str:
    """Rewrite a reason that names types as Python has them."""
    if why.startswith("Invalid enum value"):
        return "not one of the values allowed here"
    expected = _EXPECTED.fullmatch(why)
    if expected is None:
        return why
    wanted = " or ".join(_JSON.get(name, name) for name in expected[1].split(" | "))
    given = f", not {_GIVEN.get(expected[3], expected[3])}" if expected[3] else ""
    return f"must be {wanted}{expected[2]}{given}"


def _meant(said: str, known: list[str]) -> str:
    near = get_close_matches(said[:100], known, 1)
    return f"; did you mean {near[0]}?" if near else ""


def _fields(kind: Any, where: str) -> list[str]:
    return [
        field.encode_name for each in _at(kind, where) if isinstance(each, inspect.StructType) for field in each.fields
    ]


def _words(kind: Any, where: str) -> list[str]:
    types = list(_at(kind, where))
    words = [str(member.value) for each in types if isinstance(each, inspect.EnumType) for member in each.cls]
    return words + [str(value) for each in types if isinstance(each, inspect.LiteralType) for value in each.values]


def _own_forms(kind: Any, where: str) -> Iterator[str]:
    """Say the form of a text at that path where its type has words for it: they hold for its length too."""
    for each in _said_at(kind, where):
        if isinstance(each, inspect.Metadata) and (form := (each.extra or {}).get(FORM)):
            yield f"must be {form}"


def _forms(kind: Any, where: str) -> Iterator[str]:
    """Say the form of a text at that path in words: its own, those of its pattern, or an example."""
    for each in _said_at(kind, where):
        if isinstance(each, inspect.StrType) and each.pattern in _FORMS:
            yield _FORMS[each.pattern]
        if isinstance(each, inspect.Metadata) and isinstance(each.type, inspect.StrType):
            examples = (each.extra_json_schema or {}).get("examples", ())
            if form := (each.extra or {}).get(FORM):
                yield f"must be {form}"
            elif examples:
                yield f'is not of the form that is wanted, such as "{examples[0]}"'


def _at(kind: Any, where: str) -> Iterator[inspect.Type]:
    """Find the types that a value at that path may have, without what else is said of them."""
    for each in _said_at(kind, where):
        yield each.type if isinstance(each, inspect.Metadata) else each


def _said_at(kind: Any, where: str) -> Iterator[inspect.Type]:
    """Find the types that a value at that path may have."""
    types = list(_each(inspect.type_info(kind)))
    for step in _STEP.finditer(where):
        plain = [each.type if isinstance(each, inspect.Metadata) else each for each in types]
        types = [inner for each in plain for inner in _inside(each, step[1])]
    yield from types


def _inside(type_: inspect.Type, name: str | None) -> Iterator[inspect.Type]:
    match type_:
        case inspect.StructType() if name is not None:
            for field in type_.fields:
                if field.encode_name == name:
                    yield from _each(field.type)
        case inspect.DictType():
            yield from _each(type_.value_type)
        case inspect.ListType() | inspect.VarTupleType() | inspect.SetType() | inspect.FrozenSetType() if name is None:
            yield from _each(type_.item_type)


def _each(type_: inspect.Type) -> Iterator[inspect.Type]:
    """List the members of a union, whatever is said of it."""
    match type_:
        case inspect.Metadata(type=inspect.UnionType() | inspect.Metadata()):
            yield from _each(type_.type)
        case inspect.UnionType():
            for each in type_.types:
                yield from _each(each)
        case _:
            yield type_
