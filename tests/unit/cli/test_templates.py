"""Translations as files: what a translator gets and gives back."""

from __future__ import annotations

from typing import Any

import pytest

from waypost.cli.translations import Translated, from_xliff, to_xliff

CONTENT: dict[str, Any] = {
    "default_locale": "en",
    "texts": {
        "en": {
            "hello": 'Hello <b>{{ name }}</b> & "you"',
            "items": {"one": "{{ count }} item", "other": "{{ count }} items", "=0": "none"},
            "liked": {"a b#c": {"one": "her photo", "other": "her photos"}, "other": "a photo"},
        },
        "pl": {"items": {"few": "{{ count }} rzeczy"}},
    },
}


def test_a_translator_gets_a_unit_for_each_plural_form_of_the_language() -> None:
    said = to_xliff("order-shipped", CONTENT, "pl").decode()
    assert 'source-language="en" target-language="pl"' in said
    assert [part.split('"')[0] for part in said.split('<trans-unit id="')[1:]] == [
        "hello",
        *(f"items#{form}" for form in ("=0", "one", "few", "many", "other")),
        *(f"liked#a%20b%23c#{form}" for form in ("one", "few", "many", "other")),
        "liked#other",
    ]
    assert from_xliff(said.encode()) == Translated("pl", {"items": {"few": "{{ count }} rzeczy"}})


def test_what_is_translated_comes_back_as_the_texts_of_the_language() -> None:
    """All of it, to the last sign: here a translator who repeats the source."""
    whole = to_xliff("order-shipped", CONTENT | {"texts": {**CONTENT["texts"], "de": CONTENT["texts"]["en"]}}, "de")
    assert from_xliff(whole) == Translated("de", CONTENT["texts"]["en"])


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"<xliff", "no XML"),
        (b"<xliff version='2.0'/>", "no XLIFF 1.2"),
        (b'<!DOCTYPE x [<!ENTITY a "b">]><xliff>&a;</xliff>', "a document type is not read"),
    ],
)
def test_what_is_no_translation_is_refused(data: bytes, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        from_xliff(data)


def test_a_language_that_nobody_speaks_is_refused() -> None:
    with pytest.raises(ValueError, match="no language of the CLDR: tlh"):
        to_xliff("order-shipped", CONTENT, "tlh")
