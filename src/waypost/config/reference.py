"""Every setting by path, type, default and meaning: the tables of docs/configuration.md come from here."""

from __future__ import annotations

import ast
import datetime as dt
import inspect
import textwrap
import types
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import msgspec
from msgspec import NODEFAULT, Struct
from msgspec.structs import FieldInfo, replace

from waypost.config.building import join, keys_of, without_none
from waypost.config.settings import DEFAULT_STORE_URL, Config, one_per_core
from waypost.domain.channel_steps import SubmittedStep
from waypost.domain.ids import AppId
from waypost.domain.limits import Quota
from waypost.domain.quiet_hours import Hours
from waypost.domain.retry import RetryPolicy
from waypost.ports.plugin import SenderPlugin
from waypost.runtime.listening import Listen

BEGIN = "<!-- generated: waypost check-config --settings -->"
END = "<!-- end of generated -->"


_LEAVES = (RetryPolicy, Listen, Quota, Hours)
"""Settings of several parts that are written as one text."""
Sections = Mapping[str, type[Struct]]
NO_SECTIONS: Sections = MappingProxyType({})
_SET_BY_LOADING = {"store.url": DEFAULT_STORE_URL, "<policy>.name": "the path of its key"}


_OF_APPS = {
    "issuers": "Issuers of tokens",
    "types": "Types and preferences",
    "preferences": "Types and preferences",
}
"""The titles of an app's sections beside those of channels."""
NO_DEFAULT = "–"
"""What a setting has in the place of its default where it may be left out."""
LONGER_THAN_A_REFERENCE = 20
"""Characters by which a meaning must be longer than a path to be told once alone."""


class Setting(Struct, frozen=True):
    """A line of the reference."""

    path: str
    """The path, with placeholders such as ``<app>`` where an operator chooses the name."""
    kind: str
    default: str
    meaning: str
    """The meaning; empty where the code says nothing, which a test refuses."""


def settings(plugins: Sequence[SenderPlugin], sections: Sections = NO_SECTIONS) -> list[Setting]:
    """List every setting, in the order of the tree; the parts of a retry policy come last, once."""
    return [*_of_struct(Config, "", plugins, sections), *_of_struct(RetryPolicy, "<policy>", plugins, {})]


def markdown(plugins: Sequence[SenderPlugin], sections: Sections = NO_SECTIONS) -> str:
    """Write the tables of docs/configuration.md, one for each branch of the tree."""
    titles = {str(plugin.channel): plugin.title for plugin in plugins} | _OF_APPS
    branches: dict[str, list[Setting]] = {}
    said: dict[str, str] = {}
    for setting in settings(plugins, sections):
        first = said.setdefault(setting.meaning, setting.path)
        again = first != setting.path and len(setting.meaning) > len(first) + LONGER_THAN_A_REFERENCE
        row = replace(setting, meaning=f"As `{first}`.") if again else setting
        branches.setdefault(_section(setting.path, titles), []).append(row)
    tables = []
    for title, rows in branches.items():
        head = f"### {title}\n\n| setting | value (default) | meaning |\n|---|---|---|\n"
        tables.append(head + "".join(f"| `{row.path}` | {_value(row)} | {row.meaning} |\n" for row in rows))
    return f"{BEGIN}\n" + "\n".join(tables) + END


def _value(row: Setting) -> str:
    return row.kind if row.default == NO_DEFAULT else f"{row.kind} ({row.default})"


def _section(path: str, titles: Mapping[str, str]) -> str:
    parts = path.split(".")
    if parts[0] == "apps":
        return titles.get(parts[2], "Apps") if len(parts) > 3 else "Apps"
    branches = {
        "store": "The store",
        "kafka": "The log",
        "redis": "Redis",
        "cassandra": "Cassandra",
        "sources": "Sources",
        "rest": "The API",
        "grpc": "The gRPC API",
        "<policy>": "A retry policy of your own",
    }
    return branches.get(parts[0], "The process")


def _of_struct(kind: type[Struct], path: str, plugins: Sequence[SenderPlugin], sections: Sections) -> Iterator[Setting]:
    for each in keys_of(kind, plugins, sections):
        yield from _of_field(each, join(path, each.encode_name), _meaning(kind, each), plugins, sections)


def _of_field(
    each: FieldInfo, path: str, meaning: str, plugins: Sequence[SenderPlugin], sections: Sections
) -> Iterator[Setting]:
    kind, _ = without_none(each.type)
    if get_origin(kind) is dict:
        key, inner = get_args(kind)
        placeholder = join(path, f"<{_placeholder(key)}>")
        if inner in _LEAVES or not (isinstance(inner, type) and issubclass(inner, Struct)):
            yield Setting(placeholder, _kind(inner), NO_DEFAULT, meaning)
        else:
            yield from _of_struct(inner, placeholder, plugins, sections)
    elif isinstance(kind, type) and issubclass(kind, Struct) and kind not in _LEAVES:
        yield from _of_struct(kind, path, plugins, sections)
    else:
        yield Setting(path, "file" if path.endswith("_file") else _kind(kind), _default(each, path), meaning)


def _placeholder(key: Any) -> str:
    names = {"AppId": "app", "ErrorClass": "class", "TopicKind": "kind", "LibrdkafkaProperty": "property"}
    names |= {
        "CallerName": "caller",
        "EndpointName": "endpoint",
        "SourceName": "source",
        "IssuerName": "issuer",
        "NotificationType": "type",
        "str": "channel",
    }
    return names.get(key.__name__) or str(key.__name__).lower()


def _kind(kind: Any) -> str:
    if get_origin(kind) is Annotated:
        inner, *metas = get_args(kind)
        return _kind(inner) + "".join(_bounds(meta) for meta in metas)
    if get_origin(kind) is Literal:
        return "/".join(f"`{choice}`" for choice in get_args(kind))
    if get_origin(kind) in (Union, types.UnionType):
        return " or ".join(_kind(each) for each in get_args(kind))
    if get_origin(kind) is tuple:
        inner = _kind(get_args(kind)[0])
        return "list" if inner == "text" else f"list: {inner}"
    if isinstance(kind, type) and issubclass(kind, Enum):
        return "/".join(f"`{choice.value}`" for choice in kind)
    names = {
        str: "text",
        AppId: "text",
        int: "integer",
        float: "number",
        bool: "`true`/`false`",
        Path: "file",
        SubmittedStep: "`{to, until, for}`",
        dt.date: "date",
    }
    names |= {RetryPolicy: "name or settings", Listen: "host:port", Quota: "limit", Hours: "hours"}
    return names[kind]


def _bounds(meta: msgspec.Meta) -> str:
    if meta.ge is not None and meta.le is not None:
        return f" {meta.ge:,}–{meta.le:,}"
    above = f" >{meta.gt}" if meta.gt is not None else ""
    least = f" ≥{meta.ge:,}" if meta.ge is not None else ""
    most = f" ≤{meta.le:,}" if meta.le is not None else ""
    return above + least + most


def _default(each: FieldInfo, path: str) -> str:
    if each.default_factory is one_per_core:
        return "one per core, at most 64"
    default = each.default if each.default_factory is NODEFAULT else each.default_factory()
    if path in _SET_BY_LOADING:
        default = _SET_BY_LOADING[path]
    match default:
        case None | ():
            return NO_DEFAULT
        case _ if default is NODEFAULT:
            return "required"
        case RetryPolicy(name=name):
            return f"`{name}`"
        case Enum():
            return f"`{default.value}`"
        case tuple():
            return ", ".join(f"`{one}`" for one in default)
        case bool():
            return f"`{str(default).lower()}`"
        case int() | float():
            return f"{default:,}"
        case _:
            return f"`{default}`" if path != "<policy>.name" else str(default)


def _meaning(kind: type[Struct], each: FieldInfo) -> str:
    """Return the meaning of a field from the code: its description for OpenAPI, or the text under it."""
    annotated, _ = without_none(each.type)
    for meta in get_args(annotated)[1:] if get_origin(annotated) is Annotated else ():
        if meta.description:
            return str(meta.description)
    return texts_under_names(kind).get(each.name, "").replace("``", "`")


@cache
def texts_under_names(kind: type) -> dict[str, str]:
    """Read the texts under the fields of a struct, or the members of an enum, those of its base included."""
    base = kind.__base__
    texts = dict(texts_under_names(base)) if base is not None and base.__module__.startswith("waypost.") else {}
    tree = ast.parse(textwrap.dedent(inspect.getsource(kind))).body[0]
    assert isinstance(tree, ast.ClassDef)
    for field, text in zip(tree.body, tree.body[1:], strict=False):
        match field, text:
            case (
                (ast.AnnAssign(target=ast.Name(id=name)) | ast.Assign(targets=[ast.Name(id=name)])),
                ast.Expr(value=ast.Constant(value=str(words))),
            ):
                texts[name] = " ".join(words.split())
            case _:
                pass
    return texts
