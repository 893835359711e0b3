"""The configuration reference says all there is, in the words of the code."""

from __future__ import annotations

from pathlib import Path

from waypost.bootstrap.features import sections
from waypost.bootstrap.registry import installed
from waypost.config.reference import BEGIN, END, markdown, settings
from waypost.domain.retry import POLICIES, ErrorClass

PAGE = Path(__file__).parents[3] / "docs" / "configuration.md"


def test_every_setting_has_a_meaning() -> None:
    assert [setting.path for setting in settings(installed(), sections()) if not setting.meaning] == []


def test_the_page_holds_the_generated_tables() -> None:
    """To renew it: waypost check-config --settings."""
    text = PAGE.read_text(encoding="utf-8")
    assert text[text.index(BEGIN) : text.index(END) + len(END)] == markdown(installed(), sections())


def test_the_page_names_every_policy_and_error_class() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert [name for name in (*POLICIES, *ErrorClass) if f"`{name}`" not in text] == []


def test_a_long_meaning_is_told_once_and_then_referred_to() -> None:
    tables = markdown(installed())
    url = next(setting for setting in settings(installed()) if setting.path == "redis.url")
    assert tables.count(url.meaning) == 1
    assert "| `sources.<source>.redis.url` | text (required) | As `redis.url`. |" in tables
