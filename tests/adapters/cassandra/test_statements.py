"""An audit of every statement that is made of devices, and of copies of feeds."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.shows import shows
from waypost.stores import cassandra
from waypost.stores.cassandra import feed_copy, statements

KEYS = {"device": ("app", "user_id"), "token_owner": ("app", "token_hash"), "feed": ("app", "user_id")}
"""The partition key of each table."""
WALKS = {"_WALK", "_WALK_ON"}
STATEMENTS = {
    f"{module.__name__}.{name}": text
    for module in (statements, feed_copy)
    for name, text in vars(module).items()
    if isinstance(text, str) and re.match(r"(SELECT|INSERT|UPDATE|DELETE) ", text)
}


def test_all_statements_are_looked_at() -> None:
    kinds = (statements.Statements, feed_copy.FeedStatements)
    assert len(STATEMENTS) == sum(len(kind.__struct_fields__) for kind in kinds)


@shows("S1-35")
@pytest.mark.parametrize("name", sorted(STATEMENTS))
def test_each_names_the_whole_partition_key(name: str) -> None:
    """Requirements S1-35: but for the walk, which goes by ranges of the key's hash."""
    text = STATEMENTS[name]
    table = re.search(r"\{keyspace\}\.(\w+)", text)
    assert table is not None
    if name.rpartition(".")[2] in WALKS:
        assert "LIMIT ?" in text
    elif text.startswith("INSERT"):
        columns = text.partition("(")[2].partition(")")[0]
        assert all(key in columns.replace(" ", "").split(",") for key in KEYS[table[1]])
    else:
        assert all(re.search(rf"\b{key} (=|IN) \?", text.partition("WHERE")[2]) for key in KEYS[table[1]])


@shows("S1-35")
def test_nothing_is_filtered_by_the_server() -> None:
    """Requirements S1-35."""
    for source in Path(*cassandra.__path__).glob("*.py"):
        assert "ALLOW FILTERING" not in source.read_text().upper(), source.name
