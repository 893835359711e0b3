"""The docs check finds each kind of fault when one is planted."""

from pathlib import Path

import pytest

from scripts import check_docs

PAGE = Path("docs/planted.md")
CODE = Path("src/planted.py")


@pytest.mark.parametrize("target", ["no-such-page.md", "../README.md#no-such-heading", "#nor-here"])
def test_a_link_to_nothing_is_found(target: str) -> None:
    """A missing page and a missing heading are both named."""
    page = Path("CONTRIBUTING.md") if target.startswith("#") else PAGE
    assert list(check_docs.broken_links({page: f"see [there]({target})"}))


def test_links_that_work_pass() -> None:
    """Files, headings, other sites and what stands in a code block are no complaint."""
    text = "[a](CONTRIBUTING.md) [b](CONTRIBUTING.md#house-style) [c](https://example.com)\n```\n[d](nowhere.md)\n```\n"
    assert list(check_docs.broken_links({Path("README.md"): text})) == []


@pytest.mark.parametrize("text", ["from pypi" + ".org", "in /work" + "/main", "in /root" + "/x", "see issue" + " 12"])
def test_what_is_not_public_is_found(text: str) -> None:
    """Registry hosts, paths of one machine and tracker numbers stay out."""
    assert list(check_docs.forbidden_texts({PAGE: text}))


@pytest.mark.parametrize("text", ["a network of", "src/work/x", "GET /v1/home", "an issue with 3 parts"])
def test_harmless_words_pass(text: str) -> None:
    """What only looks alike is no complaint."""
    assert list(check_docs.forbidden_texts({PAGE: text})) == []


@pytest.mark.parametrize("line", ["--index-url x", "--find-links x", "a @ https://example.com/a.whl"])
def test_an_index_in_the_pins_is_found(line: str) -> None:
    """The pins work with any index."""
    assert list(check_docs.named_indexes({Path("requirements/dev.txt"): line}))


@pytest.mark.parametrize("exception", ["noqa", "noqa: S311", "type: ignore[misc]", "noqa: S311 -"])
def test_an_exception_without_a_reason_is_found(exception: str) -> None:
    """Its code alone is no reason."""
    assert list(check_docs.unexplained_exceptions({CODE: f"x = 1  # {exception}"}))


def test_an_exception_with_a_reason_passes() -> None:
    """The reason stands on the same line."""
    line = "x = 1  # noqa: S311 - jitter is no secret"
    assert list(check_docs.unexplained_exceptions({CODE: line})) == []


def test_a_name_that_no_page_explains_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A new event, metric or code without its words fails the check."""
    monkeypatch.setattr(check_docs, "DOCUMENTED", {"CONTRIBUTING.md": (lambda: {"make run", "never said"},)})
    assert [complaint for complaint in check_docs.undocumented_names() if "make run" in complaint] == []
    assert any("never said" in complaint for complaint in check_docs.undocumented_names())


def test_a_readme_that_grew_is_found() -> None:
    """A newcomer reads it whole."""
    assert list(check_docs.readme_too_long({Path("README.md"): "\n" * (check_docs.README_LINES + 1)}))
