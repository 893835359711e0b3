"""A version of a template, ready to be rendered: pure, the same in, the same out."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from liquid import Markup
from liquid.exceptions import LiquidError
from liquid.filter import with_context
from liquid.template import BoundTemplate
from msgspec import Struct

from waypost.domain.template import (
    TEMPLATE_FAILED,
    TemplateContent,
    Unrendered,
    chain,
    is_plural,
    normal,
)
from waypost.features.templates import locales
from waypost.features.templates.html import inlined, text_of
from waypost.features.templates.liquid import BUDGET, BoundedEnvironment, TooMuch

LINKS: Final = ("image", "icon", "link")
PLAIN: Final = ("title", "subtitle", "body", *LINKS, "subject", "text")
GROWN_LIMIT: Final = 256 * 1024
"""The most characters that one filter makes."""
_LINK: Final = re.compile(r"[^\s\x00-\x1f\x7f]{1,2048}")


class Wanted(Struct, frozen=True):
    """The language and the time zone that a rendering is for."""

    locales: tuple[str, ...]
    """The locales to look for texts in, in order."""
    zone: str | None = None


class Compiled:
    """One version; its texts are parsed when they are first needed."""

    def __init__(self, content: TemplateContent) -> None:
        self.content = content
        self.texts = {normal(locale): texts for locale, texts in content.texts.items()}
        self._wanted = Wanted(chain(None, content.default_locale))
        self._plain = BoundedEnvironment(content.parts, self._filters(is_html=False), html=False)
        self._html = BoundedEnvironment(content.parts, self._filters(is_html=True), html=True)
        self._parsed: dict[tuple[bool, str], BoundTemplate] = {}

    def said(self, entry: str, values: Mapping[str, Any], wanted: Wanted) -> dict[str, str]:
        """Render the texts of one entry; Unrendered says why that cannot be."""
        texts = self.content.channels[entry]
        self._wanted = wanted
        made: dict[str, str] = {}
        for name in PLAIN:
            source = getattr(texts, name)
            if source is not None and (text := self._render(source, values, f"{entry}.{name}").strip()):
                made[name] = text
        if texts.html is not None:
            made["html"] = inlined(self._render(texts.html, values, f"{entry}.html", is_html=True))
            made.setdefault("text", text_of(made["html"]))
        for name in LINKS:
            if name in made and not _LINK.fullmatch(made[name]):
                raise Unrendered(TEMPLATE_FAILED, f"{entry}.{name}: no link")
        if not {"title", "body", "subject", "text"} & {name for name, text in made.items() if text}:
            raise Unrendered(TEMPLATE_FAILED, f"{entry}: says nothing")
        return made

    def locale_for(self, asked: Sequence[str]) -> str:
        """Return the locale of *asked* whose texts are said first."""
        return next((each for each in asked if each in self.texts), normal(self.content.default_locale))

    def _render(self, source: str, values: Mapping[str, Any], where: str, *, is_html: bool = False) -> str:
        environment = self._html if is_html else self._plain
        environment.left = BUDGET
        return environment.fill(self.parse(source, where, is_html=is_html), values)

    def parse(self, source: str, where: str, *, is_html: bool) -> BoundTemplate:
        """Parse *source*, once; Unrendered says what is wrong with it, and *where*."""
        key = is_html, source
        if key not in self._parsed:
            self._parsed[key] = (self._html if is_html else self._plain).compile(source, where)
        return self._parsed[key]

    def _filters(self, *, is_html: bool) -> dict[str, Callable[..., Any]]:
        @with_context
        def translate(key: Any, *, context: Any, **given: Any) -> str:
            said = self._translated(str(key), given, context, is_html=is_html)
            return Markup(said) if is_html else said

        def language() -> Any:
            return locales.locale_of(self._language())

        def zone(own: str | None) -> str | None:
            return self._wanted.zone if own is None else own

        return {
            "t": translate,
            "number": lambda value, digits=None: locales.number(value, language(), digits),
            "money": lambda value, currency: locales.money(value, language(), currency),
            "percent": lambda value: locales.percent(value, language()),
            "date": lambda value, width="medium", zone_=None: locales.day(value, language(), zone(zone_), width),
            "time": lambda value, width="short", zone_=None: locales.clock(value, language(), zone(zone_), width),
            "datetime": lambda value, width="medium", zone_=None: locales.moment(value, language(), zone(zone_), width),
            "join": _join,
            "replace": _replace,
        }

    def _language(self) -> tuple[str, ...]:
        """Return the locales whose rules numbers and dates follow: the asked one, if it has texts or none has."""
        first = self.locale_for(self._wanted.locales)
        return (*[each for each in self._wanted.locales if each.startswith(first)], first)

    def _translated(self, key: str, given: Mapping[str, Any], context: Any, *, is_html: bool) -> str:
        for locale in self._wanted.locales:
            forms = self.texts.get(locale, {}).get(key)
            if forms is not None:
                source = form_of(forms, locale, given)
                template = self.parse(source, f"texts.{locale}.{key}", is_html=is_html)
                inner = context.copy(given, carry_loop_iterations=True, template=template)
                buffer = template._get_buffer()
                template.render_with_context(inner, buffer, partial=True, block_scope=True)
                made: str = buffer.getvalue()
                return made
        raise LiquidError(f"no text has the key {key[:64]}", token=None)


def form_of(forms: Any, locale: str, given: Mapping[str, Any]) -> str:
    """Choose the form of a text by ``count`` and ``select``; LiquidError where none of it fits."""
    while isinstance(forms, dict):
        if all(is_plural(name) for name in forms):
            count = given.get("count")
            if count is None:
                raise LiquidError("a text with plural forms needs count", token=None)
            form = forms.get(f"={count}")
            forms = form or forms.get(locales.category_of(count, locale)) or forms["other"]
        else:
            forms = forms.get(str(given.get("select"))) or forms["other"]
    return str(forms)


def _join(values: Any, between: Any = " ") -> str:
    if not isinstance(values, list | tuple | range):
        raise LiquidError("join takes a list", token=None)
    made, link = [str(each) for each in values], str(between)
    _grown(sum(map(len, made)) + len(made) * len(link))
    return link.join(made)


def _replace(value: Any, old: Any, new: Any = "") -> str:
    text, old, new = str(value), str(old), str(new)
    _grown(len(text) + text.count(old) * max(0, len(new) - len(old)))
    return text.replace(old, new)


def _grown(length: int) -> None:
    if length > GROWN_LIMIT:
        raise TooMuch(f"makes a text of more than {GROWN_LIMIT} characters")
