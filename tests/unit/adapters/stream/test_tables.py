"""Which columns of somebody else's table mean what, and which URLs are understood."""

from __future__ import annotations

import pytest

from waypost.compat.jobs_stream.pool import understood
from waypost.compat.jobs_stream.tables import LOG_NAMES, TOKEN_NAMES, Column, matched, table_of
from waypost.domain.errors import ConfigurationError

COLUMNS = [Column(name, "text") for name in ("id", "userId", "token", "user_name", "Status")]


@pytest.mark.parametrize(
    ("named", "user"),
    [({}, "userId"), ({"user": "user_name"}, "user_name")],
)
def test_a_column_is_known_by_its_name_or_named(named: dict[str, str], user: str) -> None:
    found = matched(COLUMNS, "TOKEN_COLUMNS", TOKEN_NAMES, named)
    assert {meaning: column.name for meaning, column in found.items()} == {"id": "id", "user": user, "token": "token"}


def test_names_are_quoted() -> None:
    assert Column('user"Id', "text").quoted == '"user""Id"'


@pytest.mark.parametrize("named", [{"user": "missing"}, {"colour": "id"}])
def test_a_name_that_means_nothing_is_refused(named: dict[str, str]) -> None:
    with pytest.raises(ConfigurationError, match="TOKEN_COLUMNS"):
        matched(COLUMNS, "TOKEN_COLUMNS", TOKEN_NAMES, named)


def test_a_column_that_must_be_there_is_asked_for() -> None:
    with pytest.raises(ConfigurationError, match="no column that is its body"):
        table_of(("log", COLUMNS), "LOG_COLUMNS", LOG_NAMES, {}, ("id", "body"))


@pytest.mark.parametrize(
    ("url", "plain"),
    [
        ("postgresql://u:p%40@h:5/db", "postgresql://u:p%40@h:5/db"),
        ("postgres://h/db?schema=public&connect_timeout=3", "postgres://h/db?connect_timeout=3"),
        ("postgres://h/db?sslmode=no-verify&pool_timeout=2", "postgres://h/db?sslmode=require"),
    ],
)
def test_what_other_clients_put_into_a_url_is_passed_over(url: str, plain: str) -> None:
    assert understood(url) == plain


def test_another_kind_of_database_is_refused_without_its_url() -> None:
    with pytest.raises(ConfigurationError) as caught:
        understood("mysql://user:secret@host/db")
    assert "secret" not in str(caught.value)
