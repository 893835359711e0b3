"""Docstrings read at once: a function's begins with a verb, a type's with its noun.

Ruff's D401 finds verbs in another form than the imperative; these are the beginnings that it lets pass.
"""

import ast
from collections.abc import Iterator

import pytest

from tests.architecture.trees import ROOT

SOURCE = ROOT / "src" / "waypost"
QUESTIONS = {"How", "What", "When", "Where", "Whether", "Which", "Who", "Whom", "Whose", "Why"}
WITHOUT_NOUN = QUESTIONS | {
    "As",
    "At",
    "By",
    "From",
    "Is",
    "It",
    "Nobody",
    "Not",
    "Nothing",
    "Of",
    "So",
    "There",
    "Until",
}
WITHOUT_VERB = WITHOUT_NOUN | {
    *(
        "A",
        "After",
        "All",
        "An",
        "Any",
        "Anybody",
        "Because",
        "Before",
        "Both",
        "Each",
        "Every",
        "Everything",
        "For",
        "If",
    ),
    *("In", "Its", "Once", "One", "Others", "Our", "Since", "Some", "Somebody", "Something", "That", "The"),
    *("These", "They", "This", "Those", "To", "With", "Without"),
}


def beginnings(source: str) -> Iterator[tuple[int, str]]:
    """Find the docstrings of functions without a verb and of types without a noun: line and first word."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        text = ast.get_docstring(node)
        if text is None or any("property" in ast.unparse(each) for each in node.decorator_list):
            continue
        word = text.split()[0].rstrip(".,:;")
        is_bare = word.startswith("*") or not word[0].isupper()
        if isinstance(node, ast.ClassDef):
            if word in WITHOUT_NOUN:
                yield node.lineno, word
        elif word in WITHOUT_VERB or is_bare:
            yield node.lineno, word


def test_functions_begin_with_a_verb_and_types_with_a_noun() -> None:
    found = [
        f"{path.relative_to(SOURCE)}:{line}: {word}"
        for path in sorted(SOURCE.rglob("*.py"))
        if "_pb2" not in path.name
        for line, word in beginnings(path.read_text(encoding="utf-8"))
    ]
    assert found == []


@pytest.mark.parametrize(
    ("source", "word"),
    [
        ('def f():\n    """What is left."""\n', "What"),
        ('async def f():\n    """*x* without y."""\n', "*x*"),
        ('class C:\n    """Where it is kept."""\n', "Where"),
        ('class C:\n    """The shelf."""\n\n    def f(self):\n        """The key."""\n', "The"),
    ],
)
def test_other_beginnings_are_found(source: str, word: str) -> None:
    assert [each for _, each in beginnings(source)] == [word]


def test_a_property_may_begin_with_its_noun() -> None:
    assert (
        list(beginnings('class C:\n    """A C."""\n\n    @property\n    def f(self):\n        """The key."""\n')) == []
    )
