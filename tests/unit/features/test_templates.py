"""What a template says: by language, count and choice, in HTML and text, and within bounds whoever wrote it."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import msgspec
import pytest

from waypost.domain.template import TemplateContent, Unrendered, chain
from waypost.features.templates.compiled import Compiled, Wanted
from waypost.features.templates.html import inlined, text_of
from waypost.features.templates.liquid import BUDGET

TEXTS: dict[str, dict[str, Any]] = {
    "en": {
        "items": {"one": "{{ count }} item", "other": "{{ count }} items", "=0": "no items"},
        "liked": {
            "female": {"one": "her photo", "other": "her {{ count }} photos"},
            "other": {"one": "their photo", "other": "their {{ count }} photos"},
        },
        "greeting": "Hello {{ name }}, {{ extra }}",
        "markup": "<b>{{ name }}</b>",
        "loop": "{{ 'loop' | t }}",
    },
    "pl": {"items": {"one": "{{ count }} rzecz", "few": "{{ count }} rzeczy", "other": "{{ count }} innych"}},
    "ar": {"items": {"zero": "صفر", "one": "واحد", "two": "اثنان", "few": "قليل", "many": "كثير", "other": "آخر"}},
    "pt": {"greeting": "Olá {{ name }}, {{ extra }}"},
}


def compiled(body: str, **content: Any) -> Compiled:
    entry = {"default": {"body": body}}
    return Compiled(msgspec.convert({"channels": entry, "texts": TEXTS} | content, TemplateContent))


def said(body: str, locale: str | None = None, zone: str | None = None, **values: Any) -> str:
    made = compiled(body, parts={"hi": "Hi {{ name }}{{ more }}"})
    return made.said("default", values, Wanted(chain(locale, "en"), zone))["body"]


@pytest.mark.parametrize(
    ("locale", "counts", "texts"),
    [
        ("en", (0, 1, 2, "1"), ("no items", "1 item", "2 items", "1 item")),
        ("pl", (1, 3, 5, 22), ("1 rzecz", "3 rzeczy", "5 innych", "22 rzeczy")),
        ("ar", (0, 1, 2, 3, 11, 100), ("صفر", "واحد", "اثنان", "قليل", "كثير", "آخر")),
        ("pt-BR", (1, 2), ("1 item", "2 items")),
        ("tlh", (1, 2), ("1 item", "2 items")),
    ],
)
def test_a_count_has_the_form_of_the_language_that_the_text_is_in(
    locale: str, counts: tuple[Any, ...], texts: tuple[str, ...]
) -> None:
    assert tuple(said("{{ 'items' | t: count: n }}", locale, n=n) for n in counts) == texts


@pytest.mark.parametrize(
    ("gender", "n", "text"),
    [("female", 1, "her photo"), ("female", 3, "her 3 photos"), ("x", 1, "their photo"), (None, 2, "their 2 photos")],
)
def test_a_form_is_chosen_by_gender_and_then_by_count(gender: str | None, n: int, text: str) -> None:
    assert said("{{ 'liked' | t: select: gender, count: n }}", gender=gender, n=n) == text


def test_a_text_has_the_templates_variables_and_its_own() -> None:
    assert said("{{ 'greeting' | t: extra: 'you' }}", "pt-BR", name="Ann") == "Olá Ann, you"
    assert said("{% render 'hi', more: '!' %}", name="Ann") == "Hi Ann!"


@pytest.mark.parametrize(
    ("locale", "body", "text"),
    [
        ("en", "{{ 1234.5 | number }} {{ 0.25 | percent }} {{ 9 | money: 'EUR' }}", "1,234.5 25% €9.00"),
        ("pl", "{{ 12345.5 | number: 2 }}", "12\xa0345,50"),
        ("en-GB", "{{ '2026-01-31T23:30:00Z' | date: 'long' }}", "1 February 2026"),
        ("en-GB", "{{ '2026-01-31' | date: 'long' }}", "31 January 2026"),
        ("en-GB", "{{ 0 | time }} {{ 0 | datetime: 'short' }}", "01:00 01/01/1970, 01:00"),
    ],
)
def test_numbers_and_times_are_as_the_language_writes_them(locale: str, body: str, text: str) -> None:
    """In the reader's time zone; a date alone is the same everywhere."""
    made = compiled(body, texts={"en": {}, "pl": {}, "en-GB": {}})
    assert made.said("default", {}, Wanted(chain(locale, "en"), "Europe/Zurich"))["body"] == text


@pytest.mark.parametrize(
    ("body", "name"),
    [
        ("{{ order.total }}", "order.total"),
        ("{% if promo %}x{% endif %}", "promo"),
        ("{{ users[key].name }}", "users[key].name"),
        ("{% for each in things %}{{ each }}{% endfor %}", "things"),
        ("{{ 'items' | t: count: n }}", "n"),
        ("{{ 'greeting' | t }}", "name"),
        ("{% render 'hi', more: '' %}", "name"),
    ],
)
def test_a_missing_variable_is_named_as_the_template_writes_it(body: str, name: str) -> None:
    """What an index in it came to is a value of somebody, and is not said."""
    with pytest.raises(Unrendered) as missing:
        said(body, order={}, users={"a": 1}, key="ann@example.com")
    assert (missing.value.code, missing.value.why) == ("missing_variable", f"the variable {name} is missing")


def test_the_filter_default_does_without() -> None:
    assert said("{{ promo | default: 'none' }}") == "none"


BIG = "x" * 60_000
HOSTILE: dict[str, str] = {
    "a long loop": "{% for i in (1..1000000000) %}x{% endfor %}",
    "a long loop backwards": "{% for i in (1..1000000000) reversed %}x{% endfor %}",
    "a long loop by a variable": "{% for i in (1..n) %}x{% endfor %}",
    "loops in loops": "{% for i in (1..9000) %}{% for j in (1..9000) %}x{% endfor %}{% endfor %}",
    "a loop after the other": "{% for i in (1..9000) %}{% endfor %}" * 1_000,
    "a search in a range": "{% if (1..1000000000) contains 'x' %}x{% endif %}",
    "a range as a text": "{{ (1..1000000000) | join: ',' }}",
    "a text that doubles": "{% assign a = 'aaaa' %}{% for i in (1..60) %}{% assign a = a | append: a %}{% endfor %}",
    "a text in each character": "{{ big | replace: '', big }}",
    "a text between elements": "{{ big | split: 'x' | join: big }}",
    "a number that squares": "{% assign a = 10 %}{% for i in (1..60) %}{% assign a = a | times: a %}{% endfor %}",
    "a list that doubles": "{% assign a = l %}{% for i in (1..60) %}{% assign a = a | concat: a %}{% endfor %}",
    "searches in a long text": "{% for i in (1..5000) %}{% if big contains 'y' %}{% endif %}{% endfor %}",
    "output without end": "{% for i in (1..5000) %}{{ big }}{% endfor %}",
    "a part in itself": "{% render 'again' %}",
    "parts in parts": "{% render 'twice' %}",
    "a text in itself": "{{ 'loop' | t }}",
    "many terms": "{% if " + " or ".join(["1 == 2"] * 200) + " %}x{% endif %}",
    "an unknown text": "{{ key | t }}",
    "a filter on the wrong kind": "{{ big | date }}",
}


@pytest.mark.parametrize("body", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_hostile_template_ends_clearly_and_the_next_one_is_said(body: str) -> None:
    """It would take minutes or gigabytes; that it ends at all is what shows."""
    parts = {"again": "{% render 'again' %}"} | {
        "twice": "{% render 'a9' %}",
        "a0": "x",
        **{f"a{n}": f"{{% render 'a{n - 1}' %}}" * 9 for n in range(1, 10)},
    }
    values = {"n": 10**9, "big": BIG, "l": [1, 2], "key": "nothing"}
    with pytest.raises(Unrendered) as refused:
        compiled(body, parts=parts).said("default", values, Wanted(("en",)))
    assert refused.value.code == "template_failed"
    assert BIG[:100] not in refused.value.why
    assert said("{{ name }}", name="Ann") == "Ann"


def test_a_usual_digest_is_far_from_the_bounds() -> None:
    """Two hundred lines of several values each."""
    lines = [{"name": f"thing {n}", "price": n} for n in range(200)]
    body = "{% for each in lines %}{{ each.name | upcase }}: {{ each.price | money: 'EUR' }}{% endfor %}"
    made = compiled(body)
    assert "THING 199: €199.00" in made.said("default", {"lines": lines}, Wanted(("en",)))["body"]
    assert made._plain.left > BUDGET // 2


def mail(html: str, **values: Any) -> dict[str, str]:
    entry = {"email": {"subject": "{{ name }}", "html": html}}
    made = Compiled(msgspec.convert({"channels": entry, "texts": TEXTS}, TemplateContent))
    return made.said("email", values, Wanted(("en",)))


def test_values_are_escaped_in_html_and_markup_of_texts_is_not() -> None:
    made = mail("<p>{{ name }} {{ 'markup' | t }} {{ name | append: name }}</p>", name="<script>&")
    bad = "&lt;script&gt;&amp;"
    assert made["html"] == f"<p>{bad} <b>{bad}</b> {bad}{bad}</p>"
    assert (made["subject"], made["text"]) == ("<script>&", "<script>& <script>& <script>&<script>&")


def test_styles_are_written_into_elements_and_nothing_is_fetched(tmp_path: Path) -> None:
    sheet = tmp_path / "sheet.css"
    sheet.write_text("p { color: blue }")
    link = f'<link rel="stylesheet" href="{sheet}"><link rel="stylesheet" href="http://127.0.0.1:9/x.css">'
    rules = "p {color: red} @media print {p {color: black}}"
    made = inlined(f"<html><head>{link}<style>{rules}</style></head><body><p>x</p></body></html>")
    assert '<p style="color: red;">x</p>' in made
    assert "@media print" in made and "blue" not in made


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<h1>Hi</h1><p>one\n two</p><p>three<br>four</p>", "Hi\n\none two\n\nthree\nfour"),
        ("<ul><li>a</li><li>b</li></ul>", "- a\n- b"),
        ('<a href="https://x.example/a">go</a>', "go (https://x.example/a)"),
        ('<a href="https://x.example">https://x.example</a>', "https://x.example"),
        ("<head><title>t</title><style>p{}</style></head><body>b<script>s</script></body>", "b"),
        ("<table><tr><td>a</td><td>b</td></tr><tr><td>c</td></tr></table>", "a b\nc"),
        ('<img alt="A cat" src="x"> &lt;3 &eacute;', "A cat <3 é"),
        ("<p>unclosed <b>text", "unclosed text"),
    ],
)
def test_a_text_is_made_of_html(html: str, text: str) -> None:
    assert text_of(html) == text


def test_the_same_is_said_again() -> None:
    """A retry, and another process, render the same to the last byte."""
    values = {"n": 3, "name": "Ann"}
    body = "{{ 'items' | t: count: n }}{% cycle 'a', 'b' %}{{ 'liked' | t: count: n }}"
    made = [compiled(body).said("default", values, Wanted(("en",))) for _ in range(2)]
    again = compiled(body)
    made += [again.said("default", values, Wanted(("en",))) for _ in range(2)]
    assert all(one == other for one, other in itertools.pairwise(made))
