"""Tests of a user's attributes in SQL, as each engine reads JSON; ``profile`` is the user's row, or NULL throughout.

Each function returns a condition that is true or false, never NULL, and what it binds in the order of its marks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec

from waypost.domain.segment import AttributeTest, Bound, Scalar
from waypost.stores.sql.driver import Dialect

Condition = tuple[str, list[Any]]
"""A condition and what it binds."""

_encode: Final = msgspec.json.Encoder().encode
_VALUES: Final = "(SELECT value FROM json_each(?))"
_OURS: Final = "(CAST(profile.attributes AS jsonb) -> CAST(? AS text))"
_OUR_TEXT: Final = "(CAST(profile.attributes AS jsonb) ->> CAST(? AS text))"


def attribute_test(test: AttributeTest, dialect: Dialect) -> Condition:
    """Build the condition that an attribute is as *test* says."""
    conditions: list[str] = []
    bound: list[Any] = []
    for sql, values in _each(test, is_jsonb=dialect.has_jsonb):
        conditions.append(sql)
        bound += values
    return f"({' AND '.join(conditions)})", bound


def _each(test: AttributeTest, *, is_jsonb: bool) -> Iterator[Condition]:
    wanted = test.in_ if test.is_ is None else (test.is_,)
    compared = (("above", ">"), ("at_least", ">="), ("below", "<"), ("at_most", "<="))
    bounds = [(sign, value) for name, sign in compared if (value := getattr(test, name)) is not None]
    if wanted is not None:
        yield (_one_of_in_jsonb if is_jsonb else _one_of_in_json)(test.name, wanted)
    for sign, value in bounds:
        yield (_compared_in_jsonb if is_jsonb else _compared_in_json)(test.name, sign, value)
    if wanted is None and not bounds:
        yield (f"({_OURS} IS NOT NULL)", [test.name]) if is_jsonb else (_HAS, [_path(test.name)])


_HAS: Final = "(json_type(profile.attributes, ?) IS NOT NULL)"
_ONE_OF: Final = f"""\
CASE json_type(profile.attributes, ?)
WHEN 'text' THEN json_extract(profile.attributes, ?) IN {_VALUES}
WHEN 'array' THEN EXISTS (SELECT 1 FROM json_each(profile.attributes, ?) AS it WHERE it.value IN {_VALUES})
WHEN 'integer' THEN json_extract(profile.attributes, ?) IN {_VALUES}
WHEN 'real' THEN json_extract(profile.attributes, ?) IN {_VALUES}
WHEN 'true' THEN ? WHEN 'false' THEN ? ELSE FALSE END
"""  # noqa: S608 - a constant


def _one_of_in_json(name: str, wanted: Sequence[Scalar]) -> Condition:
    path = _path(name)
    texts = _json([value for value in wanted if isinstance(value, str)])
    numbers = _json([value for value in wanted if not isinstance(value, str | bool)])
    has = [any(value is said for value in wanted) for said in (True, False)]
    return _ONE_OF, [path, path, texts, path, texts, path, numbers, path, numbers, *has]


def _one_of_in_jsonb(name: str, wanted: Sequence[Scalar]) -> Condition:
    one = f"EXISTS (SELECT 1 FROM jsonb_array_elements(CAST(? AS jsonb)) AS wanted (one) WHERE {_OURS} @> one)"  # noqa: S608 - as above
    return one, [_json(wanted), name]


def _compared_in_json(name: str, sign: str, value: Bound) -> Condition:
    path = _path(name)
    ours = f"json_extract(profile.attributes, ?) {sign}"
    if isinstance(value, str):
        test = f"CASE json_type(profile.attributes, ?) WHEN 'text' THEN {ours} ? ELSE FALSE END"
        return test, [path, path, value]
    test = f"CASE WHEN json_type(profile.attributes, ?) IN ('integer', 'real') THEN {ours} ? ELSE FALSE END"
    return test, [path, path, value]


def _compared_in_jsonb(name: str, sign: str, value: Bound) -> Condition:
    kind = "string" if isinstance(value, str) else "number"
    sides = f'{_OUR_TEXT} COLLATE "C" {sign} CAST(? AS text)'
    if not isinstance(value, str):
        sides = f"CAST({_OUR_TEXT} AS numeric) {sign} CAST(CAST(? AS text) AS numeric)"
    test = f"CASE jsonb_typeof({_OURS}) WHEN '{kind}' THEN {sides} ELSE FALSE END"
    return test, [name, name, value if isinstance(value, str) else _json(value)]


def _path(name: str) -> str:
    return f'$."{name}"'


def _json(value: Any) -> str:
    return _encode(value).decode()
