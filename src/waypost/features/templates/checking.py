"""What is wrong with a version, before it is written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from waypost.domain.errors import Fault
from waypost.domain.template import EMAIL, ChannelTexts, TemplateContent, Unrendered, chain
from waypost.features.templates.compiled import PLAIN, Compiled
from waypost.features.templates.liquid import asked_by


def content_faults(content: TemplateContent) -> list[Fault]:
    """List what is wrong with a version: every text is parsed, and the keys that are asked for are there."""
    try:
        compiled = Compiled(content)
    except Unrendered as wrong:
        return [Fault("parts", wrong.why)]
    found = [fault for locale, texts in content.texts.items() for fault in _text_faults(compiled, locale, texts)]
    default = {key for each in chain(None, content.default_locale) for key in compiled.texts.get(each, {})}
    for entry, texts in content.channels.items():
        for name in (*PLAIN, "html"):
            source = getattr(texts, name)
            if source is None:
                continue
            where = f"channels.{entry}.{name}"
            try:
                template = compiled.parse(source, where, is_html=name == "html")
            except Unrendered as wrong:
                found.append(Fault(where, wrong.why.removeprefix(f"{where}: ")))
                continue
            asked = asked_by(template)
            absent = sorted(asked.texts - default)
            found += [Fault(where, f"the texts of {content.default_locale} have no {key}") for key in absent]
            found += [Fault(where, f"no part is called {name}") for name in sorted(asked.parts - content.parts.keys())]
        found += _entry_faults(entry, texts)
    return found


def _entry_faults(entry: str, texts: ChannelTexts) -> Iterator[Fault]:
    if entry != EMAIL and (texts.subject or texts.html or texts.text):
        yield Fault(f"channels.{entry}", "subject, html and text are of email alone")
    if not (texts.title or texts.body or texts.subject or texts.html or texts.text):
        yield Fault(f"channels.{entry}", "says nothing")


def _text_faults(compiled: Compiled, locale: str, texts: Mapping[str, Any]) -> Iterator[Fault]:
    for key, forms in texts.items():
        where = f"texts.{locale}.{key}"
        for source in _leaves(forms, 0):
            if source is None:
                yield Fault(where, "is a text, or forms of which one is called other, or those again once")
            else:
                try:
                    compiled.parse(source, where, is_html=False)
                except Unrendered as wrong:
                    yield Fault(where, wrong.why.removeprefix(f"{where}: "))


def _leaves(forms: Any, depth: int) -> Iterator[str | None]:
    if isinstance(forms, str):
        yield forms
    elif isinstance(forms, dict) and "other" in forms and depth < 2:
        for form in forms.values():
            yield from _leaves(form, depth + 1)
    else:
        yield None
