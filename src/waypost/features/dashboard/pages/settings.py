"""Settings: what is in force and where it comes from; nothing is changed here."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from typing import Any, Final
from urllib.parse import urlsplit, urlunsplit

from litestar import Response
from msgspec import NODEFAULT, Struct
from msgspec.structs import fields

from waypost.config import AppSettings, Config
from waypost.domain.quiet_hours import Hours
from waypost.features.dashboard.desk import Desk
from waypost.features.dashboard.handling import shows
from waypost.features.dashboard.operators import Right
from waypost.features.dashboard.site import Page
from waypost.runtime.listening import Listen

_TEXTS: Final = frozenset({
    "algorithms", "audience", "bundle_id", "channel", "default_channels", "host", "issuer", "keyspace", "level",
    "project_id", "region", "subject", "time_zone", "to", "topic", "topics",
})  # fmt: skip
"""The settings whose texts are shown, beside paths and addresses: any other may be a secret."""
_WITHOUT_KEY: Final = {(Config, "features"), (AppSettings, "senders")}
"""The fields whose sections stand beside the others in the file."""
_ONE_TEXT: Final = (Listen, Hours)
_ADDRESSES: Final = ("url", "endpoint", "_origins")


class Shown(Struct, frozen=True):
    """A setting that is in force."""

    path: str
    value: str
    source: str
    """``environment``, ``file`` or ``default``."""


@shows("/settings", Right.OPERATE)
async def settings(desk: Desk) -> Response[bytes]:
    """Show every setting of the installation and of this app."""
    own = f"apps.{desk.app}."
    all_ = settings_of(desk.ground.config, os.environ)
    chosen = [each for each in all_ if not each.path.startswith("apps.") or each.path.startswith(own)]
    only_set = desk.given("all") is None
    return desk.show(
        "settings.html", settings=[each for each in chosen if not only_set or each.source != "default"], only=only_set
    )


def settings_of(config: Config, environ: Mapping[str, str]) -> list[Shown]:
    """List every setting with what is in force; no secret is among the values."""
    given = frozenset(name for name, value in environ.items() if value)
    return [Shown(path, value, _source(path, given, is_default)) for path, value, is_default in _walk("", config)]


def _source(path: str, given: frozenset[str], is_default: bool) -> str:
    parts = path.split(".")
    names = {"WAYPOST_" + "__".join(parts[: n + 1]).upper() for n in range(len(parts))}
    if names & given:
        return "environment"
    return "default" if is_default else "file"


def _walk(path: str, tree: Struct) -> Iterator[tuple[str, str, bool]]:
    for field in fields(tree):
        value = getattr(tree, field.name)
        here = path if (type(tree), field.name) in _WITHOUT_KEY else f"{path}.{field.encode_name}".lstrip(".")
        yield from _below(here, field.encode_name, value, _is_default(field, value))


def _below(path: str, name: str, value: Any, is_default: bool) -> Iterator[tuple[str, str, bool]]:
    if isinstance(value, Struct) and not isinstance(value, _ONE_TEXT):
        yield from _walk(path, value)
    elif isinstance(value, Mapping) and any(isinstance(each, Struct | Mapping) for each in value.values()):
        for key, each in value.items():
            yield from _below(f"{path}.{key}".lstrip("."), str(key), each, is_default=False)
    elif value not in ({}, ()):
        yield path, _said(name, value), is_default


def _is_default(field: Any, value: Any) -> bool:
    if field.default is not NODEFAULT:
        return bool(field.default == value)
    return field.default_factory is not NODEFAULT and bool(field.default_factory() == value)


def _said(name: str, value: Any) -> str:
    """Write a value, but for texts that may be secret."""
    match value:
        case None:
            return "not set"
        case bool():
            return "true" if value else "false"
        case Enum():
            return str(value.value)
        case int() | float():
            return f"{value:,}"
        case Listen():
            return str(value)
        case str():
            return _text(name, value)
        case _ if isinstance(value, Sequence | frozenset | set):
            return ", ".join(sorted(_said(name, each) for each in value))
        case _:
            return "set"


def _text(name: str, text: str) -> str:
    if name.endswith(_ADDRESSES):
        return _without_secrets(text)
    is_shown = name in _TEXTS or name.endswith(("_file", "_path", "directory"))
    return text if is_shown else "set"


def _without_secrets(address: str) -> str:
    """Leave out the user, the password and the query of an address."""
    parts = urlsplit(address)
    server = parts.netloc.rpartition("@")[2]
    if "://" in address:  # urlunsplit leaves out two slashes of sqlite:////folder/file
        return f"{parts.scheme}://{server}{parts.path}"
    return urlunsplit((parts.scheme, server, parts.path, "", ""))


PAGE = Page("settings", "Settings", [settings], Right.OPERATE)
