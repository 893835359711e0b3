"""Translations: a template's texts in one language, as files for translators (XLIFF 1.2) and back. Pure.

A form of a text has a unit of its own, ``items#few``: a language gets a unit for each plural category that it has.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib.parse import quote, unquote
from xml.etree import ElementTree as ET

from babel import Locale, UnknownLocaleError
from msgspec import Struct

from waypost.domain.template import PLURALS, is_plural

NAMESPACE: Final = "urn:oasis:names:tc:xliff:document:1.2"


class Translated(Struct, frozen=True):
    """The texts of one language."""

    locale: str
    texts: dict[str, Any]


def to_xliff(name: str, content: Mapping[str, Any], locale: str) -> bytes:
    """Write the texts of a template's default language, beside what there is of them in *locale*."""
    default = content.get("default_locale", "en")
    source, target = (content.get("texts", {}).get(each, {}) for each in (default, locale))
    categories = categories_in(locale)
    root = ET.Element("xliff", {"version": "1.2", "xmlns": NAMESPACE})
    said = {"original": name, "source-language": default, "target-language": locale, "datatype": "plaintext"}
    body = ET.SubElement(ET.SubElement(root, "file", said), "body")
    for key, forms in source.items():
        for path, text in _units(forms, categories):
            unit = ET.SubElement(body, "trans-unit", {"id": "#".join([key, *(quote(form, safe="=") for form in path)])})
            ET.SubElement(unit, "source").text = text
            known = _at(target.get(key), path)
            if known is not None:
                ET.SubElement(unit, "target").text = known
    ET.indent(root)
    data: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    return data


def from_xliff(data: bytes) -> Translated:
    """Read what was translated; ValueError says what is wrong with the file."""
    try:
        root = ET.fromstring(data, parser=ET.XMLParser(target=_NoDoctype()))  # noqa: S314 - it takes no document type, and so no entities
    except ET.ParseError as broken:
        raise ValueError(f"no XML: {broken}") from None
    file = root.find(f"{{{NAMESPACE}}}file")
    locale = None if file is None else file.get("target-language")
    if file is None or not locale:
        raise ValueError("no XLIFF 1.2 with a target-language")
    texts: dict[str, Any] = {}
    for unit in file.iter(f"{{{NAMESPACE}}}trans-unit"):
        target = unit.find(f"{{{NAMESPACE}}}target")
        text = "" if target is None else "".join(target.itertext())
        if text:
            _put(texts, [unquote(each) for each in (unit.get("id") or "").split("#")], text)
    return Translated(locale, texts)


def categories_in(locale: str) -> tuple[str, ...]:
    """List the plural categories of a language, ``other`` last; ValueError where the CLDR has no such language."""
    try:
        tags = Locale.parse(locale, sep="-").plural_form.tags
    except UnknownLocaleError:
        raise ValueError(f"no language of the CLDR: {locale}") from None
    return (*sorted(tags, key=PLURALS.index), "other")


class _NoDoctype(ET.TreeBuilder):
    """A builder that takes no document type, and so no entities."""

    def doctype(self, *_: object) -> None:
        """Refuse it."""
        raise ValueError("a document type is not read")


def _units(forms: Any, categories: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    """List the forms that a language has of a text, each with what the source says."""
    if not isinstance(forms, dict):
        yield (), str(forms)
        return
    names = list(forms)
    if all(map(is_plural, forms)):
        names = [*(form for form in forms if form not in PLURALS), *categories]
    for form in names:
        for path, text in _units(forms.get(form, forms["other"]), categories):
            yield (form, *path), text


def _at(forms: Any, path: tuple[str, ...]) -> str | None:
    for form in path:
        forms = forms.get(form) if isinstance(forms, dict) else None
    return forms if isinstance(forms, str) else None


def _put(texts: dict[str, Any], path: list[str], text: str) -> None:
    *above, last = path
    for form in above:
        below = texts.setdefault(form, {})
        if not isinstance(below, dict):
            raise ValueError(f"{form} is a text and has forms, too")
        texts = below
    texts[last] = text
