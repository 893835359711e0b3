"""From plain data to the settings tree: each fault is named by the path of its key, never by its value."""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Union, get_args, get_origin

import msgspec
from msgspec import Struct
from msgspec.structs import FieldInfo

from waypost.config.settings import AppSettings, Config
from waypost.domain.credential import channel_of, is_further
from waypost.domain.errors import ConfigurationError
from waypost.domain.limits import Quota
from waypost.domain.quiet_hours import Hours
from waypost.domain.retry import POLICIES, RetryPolicy
from waypost.ports.plugin import SenderPlugin
from waypost.runtime.listening import Listen


class FromEnvironment(str):
    """A value that came as text from an environment variable: ``"8"`` may be a number."""

    __slots__ = ()


class Builder(Struct, frozen=True):
    """A builder of settings; relative files are in *folder*, an app may have a section for each of *plugins*.

    The whole may have one for each of *sections*, by name.
    """

    folder: Path
    plugins: Sequence[SenderPlugin]
    sections: Mapping[str, type[Struct]] = {}

    def build(self, kind: Any, value: Any, path: str) -> Any:
        """Make a *kind* of *value*; a misfit is a ConfigurationError.

        Where a type or a name that ends in ``_file`` says so, the value is a file.
        """
        kind, optional = without_none(kind)
        if value is None and optional:
            return None
        if kind in _SHORT_FORMS and isinstance(value, str):
            return _from_short_form(kind, value, path)
        if isinstance(kind, type) and issubclass(kind, Struct):
            return self._build_struct(kind, value, path)
        if get_origin(kind) is dict:
            key_kind, value_kind = get_args(kind)
            return {
                _build_leaf(key_kind, key, join(path, str(key))): self.build(value_kind, inner, join(path, str(key)))
                for key, inner in _mapping(value, path).items()
            }
        if kind is Path or path.endswith("_file"):
            file = self.folder / Path(_build_leaf(str, value, path)).expanduser()
            return file if kind is Path else str(file)
        return _build_leaf(kind, value, path)

    def _build_struct(self, kind: type[Struct], value: Any, path: str) -> Struct:
        given = dict(_mapping(value, path))
        if kind is RetryPolicy:
            given.setdefault("name", path)
        keys = {each.encode_name: each for each in keys_of(kind, self.plugins, self.sections)}
        if kind is AppSettings:
            keys |= self._further_sections(given, path)
        for name in given:
            if name not in keys:
                raise ConfigurationError(join(path, str(name)), f"unknown key{did_you_mean(str(name), list(keys))}")
        for name, each in keys.items():
            if each.required and given.get(name) is None:
                raise ConfigurationError(join(path, name), "is required")
        built = {
            keys[name].name: self.build(keys[name].type, inner, join(path, name))
            for name, inner in given.items()
            if inner is not None  # "key:" with nothing after it means its default
        }
        if kind is AppSettings:
            channels = {plugin.channel for plugin in self.plugins}
            slots = [slot for slot in built if channel_of(slot) in channels]
            built["senders"] = {slot: built.pop(slot) for slot in slots}
        if kind is Config:
            built["features"] = {name: built.pop(name) for name in self.sections if name in built}
        return kind(**built)

    def _further_sections(self, given: Mapping[str, Any], path: str) -> dict[str, FieldInfo]:
        """Find the sections of an app's second credentials; a channel's default must stand beside them."""
        known = {plugin.channel: plugin for plugin in self.plugins}
        further = {slot: known[channel_of(slot)] for slot in given if is_further(slot) and channel_of(slot) in known}
        for slot, plugin in further.items():
            if given.get(plugin.channel) is None:
                raise ConfigurationError(join(path, plugin.channel), f"is required beside {slot}: it is the default")
        return {slot: FieldInfo(slot, slot, plugin.settings | None) for slot, plugin in further.items()}


def keys_of(
    kind: type[Struct], plugins: Sequence[SenderPlugin], sections: Mapping[str, type[Struct]]
) -> list[FieldInfo]:
    """List the keys that a *kind* may have: its fields; for an app, a section for each sender in their place.

    So it is with the whole and the *sections* of features.
    """
    fields = list(_fields(kind))
    if kind is Config:
        own = [each for each in fields if each.name != "features"]
        return [*own, *(FieldInfo(name, name, section | None, default=None) for name, section in sections.items())]
    if kind is not AppSettings:
        return fields
    channels = [FieldInfo(each.channel, each.channel, each.settings | None, default=None) for each in plugins]
    return [*channels, *(each for each in fields if each.name != "senders")]


@lru_cache(maxsize=256)
def _fields(kind: type[Struct]) -> tuple[FieldInfo, ...]:
    """Return the fields of a kind, cached: there may be hundreds of apps."""
    return msgspec.structs.fields(kind)


def without_none(kind: Any) -> tuple[Any, bool]:
    """Split ``X | None`` into the type and whether there was a None."""
    if get_origin(kind) in (Union, types.UnionType):
        inner = [each for each in get_args(kind) if each is not types.NoneType]
        assert len(inner) == 1, f"a setting has one type or none: {kind}"
        return inner[0], True
    return kind, False


def join(path: str, name: str) -> str:
    """Return the path of a key inside *path*."""
    return f"{path}.{name}" if path else name


def did_you_mean(name: str, known: list[str]) -> str:
    """Suggest the nearest known name (``; did you mean …?``), or list them all where none is near."""
    near = get_close_matches(name.lower(), known, n=1, cutoff=0.6)
    return f"; did you mean {near[0]!r}?" if near else f"; known here: {', '.join(known)}"


def _mapping(value: Any, path: str) -> Mapping[Any, Any]:
    if not isinstance(value, Mapping):
        raise ConfigurationError(path, f"expected a mapping of keys, got {_kind_of(value)}")
    return value


def _build_leaf(kind: Any, value: Any, path: str) -> Any:
    lenient = isinstance(value, FromEnvironment)
    try:
        return msgspec.convert(str(value) if lenient else value, kind, strict=not lenient)
    except msgspec.ValidationError as misfit:
        why, _, where = str(misfit).partition(" - at `$")
        inner = get_args(kind)[0] if get_origin(kind) is Annotated else kind
        if inner is str and isinstance(value, int | float):
            why = f"expected text, got {_kind_of(value)}; put it in quotes"
        raise ConfigurationError(path + where.rstrip("`"), why[:1].lower() + why[1:]) from None


def _kind_of(value: Any) -> str:
    match value:
        case None:
            return "nothing"
        case bool():
            return "true or false"
        case int() | float():
            return "a number"
        case str():
            return "text"
        case list():
            return "a list"
        case _:
            return type(value).__name__


def _from_short_form(kind: Any, value: str, path: str) -> Any:
    try:
        return _SHORT_FORMS[kind](value)
    except ValueError as misfit:
        raise ConfigurationError(path, str(misfit)) from None


def _named_policy(name: str) -> RetryPolicy:
    if name not in POLICIES:
        raise ValueError(f"no policy of that name{did_you_mean(name, sorted(POLICIES))}")
    return POLICIES[name]


_SHORT_FORMS: dict[Any, Callable[[str], Any]] = {
    RetryPolicy: _named_policy,
    Listen: Listen.parse,
    Quota: Quota.parse,
    Hours: Hours.parse,
}
"""Settings of several parts that can also be written as one text."""
