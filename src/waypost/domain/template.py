"""Templates: what a message says, apart from whom it goes to; a version, once written, never changes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Final

from msgspec import Meta, Struct

from waypost.domain.content import TemplateUse
from waypost.domain.errors import ErrorCode, Fault, InvalidRequest
from waypost.domain.submission import Submission, TemplateName
from waypost.domain.text import NO_NUL, Text
from waypost.domain.words import Words

CONTENT_LIMIT_BYTES: Final = 256 * 1024
"""The most bytes of a version, all channels and languages together."""
SOURCE_LIMIT: Final = 128 * 1024
"""The most characters of one text."""
ANY_CHANNEL: Final = "default"
"""The entry of a template that serves every channel without one of its own."""
EMAIL: Final = "email"

Source = Annotated[str, Meta(max_length=SOURCE_LIMIT, pattern=NO_NUL)]
"""A text in Liquid."""
VariableName = Annotated[str, Meta(max_length=64, pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,63}(?!\n)$")]
TextKey = Annotated[str, Meta(max_length=128, pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}(?!\n)$")]
LocaleName = Annotated[
    str, Meta(max_length=44, pattern=r"^[A-Za-z]{2,8}([_-][A-Za-z0-9]{1,8}){0,4}(?!\n)$", examples=["pt-BR"])
]
PartName = Annotated[str, Meta(max_length=64, pattern=r"^[a-z0-9_][a-z0-9_-]{0,63}(?!\n)$")]
ChannelEntry = Annotated[str, Meta(max_length=64, pattern=r"^[a-z][a-z0-9_-]*(?!\n)$", examples=["push"])]


class VariableType(Words):
    """The type of a variable's values."""

    TEXT = "text"
    NUMBER = "number"
    BOOLEAN = "boolean"
    LIST = "list"
    OBJECT = "object"


class Variable(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A variable, as its template declares it."""

    type: VariableType = VariableType.TEXT
    required: Annotated[bool, Meta(description="Refuse submissions without it.")] = False
    default: Annotated[Any, Meta(description="Stands for it where it is not given; null prints nothing.")] = None
    example: Annotated[Any, Meta(description="Stands for it in previews.")] = None


class ChannelTexts(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The texts of one channel, in Liquid."""

    title: Source | None = None
    subtitle: Source | None = None
    body: Source | None = None
    image: Source | None = None
    icon: Source | None = None
    link: Source | None = None
    subject: Annotated[Source | None, Meta(description="Of an e-mail; without it, the title.")] = None
    html: Annotated[Source | None, Meta(description="Of an e-mail. Values are escaped, styles come inline.")] = None
    text: Annotated[Source | None, Meta(description="Of an e-mail; without it, it is made from `html`.")] = None


PLURALS: Final = ("zero", "one", "two", "few", "many", "other")
"""The plural categories of the CLDR; each language has some of them."""
_EXACT: Final = re.compile(r"=[0-9]{1,9}")
Forms = dict[Text, Any]
"""The forms of a text by plural category or by a value: each a text, or forms again."""
Texts = dict[TextKey, Source | Forms]


class TemplateContent(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The content of one version of a template."""

    channels: Annotated[
        dict[ChannelEntry, ChannelTexts],
        Meta(min_length=1, description="By channel; `push` is all of push, `default` is every other channel."),
    ]
    default_locale: LocaleName = "en"
    variables: dict[VariableName, Variable] = {}
    parts: Annotated[dict[PartName, Source], Meta(description="Shared parts, for `{% render 'name' %}`.")] = {}
    texts: Annotated[
        dict[LocaleName, Texts],
        Meta(description="Texts by locale and key, for `{{ 'key' | t }}`; a plural has its forms by CLDR category."),
    ] = {}


class Version(Struct, frozen=True):
    """A version of a template, as it is stored."""

    name: TemplateName
    number: int
    content: TemplateContent


def declared_only(version: Version) -> Version:
    """Return *version* without its texts: its number, and the variables that a message needs."""
    bare = TemplateContent(channels={ANY_CHANNEL: ChannelTexts()}, variables=version.content.variables)
    return Version(version.name, version.number, bare)


class Unrendered(Exception):
    """The reason why a template says nothing: *code* is stable, the text names what is missing and holds no values."""

    def __init__(self, code: str, why: str) -> None:
        super().__init__(why)
        self.code = code
        self.why = why


MISSING_VARIABLE: Final = "missing_variable"
TEMPLATE_GONE: Final = "template_gone"
TEMPLATE_FAILED: Final = "template_failed"


def use_of(submission: Submission, version: Version | None, *, is_whole: bool = True) -> TemplateUse:
    """Return what *submission* says by *version* of its template; InvalidRequest where that cannot be.

    Where it is not *whole*, other variables come later, and none is missing yet.
    """
    assert submission.template is not None, "only such submissions are asked about"
    asked = submission.template
    if version is None:
        path = "template.name" if asked.version is None else "template.version"
        raise InvalidRequest((Fault(path, "no such template is published"),), ErrorCode.UNKNOWN_TEMPLATE)
    check(version.content.variables, submission.variables, is_whole=is_whole)
    return TemplateUse(asked.name, version.number, submission.variables, submission.locale)


def check(declared: Mapping[str, Variable], given: Mapping[str, Any], *, is_whole: bool) -> None:
    """Raise InvalidRequest where *given* lacks what is required, or is of another type."""
    missing = tuple(
        Fault(f"variables.{name}", "required by the template")
        for name, variable in declared.items()
        if variable.required and given.get(name) is None
    )
    if missing and is_whole:
        raise InvalidRequest(missing, ErrorCode.MISSING_VARIABLE)
    wrong = tuple(_wrong(declared, given))
    if wrong:
        raise InvalidRequest(wrong)


def _wrong(declared: Mapping[str, Variable], given: Mapping[str, Any]) -> Iterator[Fault]:
    for name, value in given.items():
        variable = declared.get(name)
        if variable is not None and value is not None and not fits(variable.type, value):
            yield Fault(f"variables.{name}", f"must be of the type {variable.type}")


def fits(kind: VariableType, value: Any) -> bool:
    """Tell whether *value* is of the type; lists of recipients have numbers and truth values as texts."""
    match kind:
        case VariableType.TEXT:
            return isinstance(value, str)
        case VariableType.NUMBER:
            return not isinstance(value, bool) and (isinstance(value, int | float) or as_number(value) is not None)
        case VariableType.BOOLEAN:
            return isinstance(value, bool) or value in ("true", "false")
        case VariableType.LIST:
            return isinstance(value, list)
        case VariableType.OBJECT:
            return isinstance(value, dict)


def as_number(value: Any) -> int | float | None:
    """Read a number, also one that is written as a text; None where it is none."""
    if isinstance(value, int | float):
        return value
    if not isinstance(value, str) or len(value) > 32:
        return None
    for read in (int, float):
        try:
            return read(value)
        except ValueError:
            continue
    return None


def values_of(declared: Mapping[str, Variable], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values to render with: each declared variable has one, in its type."""
    values = dict(given)
    for name, variable in declared.items():
        value = values.get(name)
        if value is None:
            if not variable.required:
                values[name] = variable.default
            else:
                values.pop(name, None)
        elif variable.type is VariableType.NUMBER:
            values[name] = as_number(value)
        elif variable.type is VariableType.BOOLEAN:
            values[name] = value in (True, "true")
    return values


def chain(locale: str | None, default: str) -> tuple[str, ...]:
    """List the locales to look in, in order: `pt-BR`, `pt`, the default, `en-GB` as `en-gb`."""
    found: list[str] = []
    for each in (locale, default):
        tags = [] if each is None else normal(each).split("-")
        found += ["-".join(tags[:n]) for n in range(len(tags), 0, -1)]
    return tuple(dict.fromkeys(found))


def normal(locale: str) -> str:
    """Return *locale* in lower case with hyphens, as it is compared."""
    return locale.replace("_", "-").lower()


def is_plural(form: str) -> bool:
    """Tell whether a form is named by a plural category, or by a number such as ``=0``."""
    return form in PLURALS or _EXACT.fullmatch(form) is not None


def entry_for(content: TemplateContent, channel: str, family: str) -> str | None:
    """Return the entry of *content* that serves a channel; None where none does."""
    return next((each for each in (channel, family, ANY_CHANNEL) if each in content.channels), None)
