"""How much of a table a statement looks at, as each engine plans it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from waypost.stores.sql.database import Database
from waypost.stores.sql.driver import Connection


async def misplanned(database: Database, sql: str, bound: Sequence[Any], *, keys: Sequence[str]) -> list[str]:
    """The steps of a statement that is to find nothing in which it looks at rows all the same.

    PostgreSQL runs it, on what the tables hold; SQLite says by which keys it would look, and *keys* must be among them,
    without sorting.
    """

    def read(connection: Connection) -> list[str]:
        if not connection.dialect.has_jsonb:
            steps = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}", bound).fetchall()]
            return [
                step
                for step in steps
                if re.search("SCAN|TEMP B-TREE", step) or not all(f"{key}=?" in step for key in keys)
            ]
        ((plan,),) = connection.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {sql}", bound).fetchall()
        return list(_looking(plan[0]["Plan"]))

    return await database.read(read)


def _looking(node: Mapping[str, Any]) -> Iterator[str]:
    looked_at = node["Actual Rows"] + node.get("Rows Removed by Filter", 0)
    if looked_at:
        yield f"{node['Node Type']}: {looked_at}"
    for inner in node.get("Plans", ()):
        yield from _looking(inner)
