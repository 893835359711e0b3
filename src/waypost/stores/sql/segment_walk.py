"""Walking the users of a filter in the order of their ids, a page of keys at a time.

A page is read from the indexes of those tables in which everybody whom the filter can choose has a row: a topic's
members, the days of an event, else profiles or devices; of all users where the filter says what they have not. Each is
read from where the walk stands, for as many users as the page has: nothing is read twice, whatever the filter leaves.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct

from waypost.domain.segment import EventTest, Filter
from waypost.stores.sql.attribute_tests import Condition
from waypost.stores.sql.segment_filter import TOPIC, Asked, condition, event_window

DAYS_READ: Final = 31
"""The most days of an event that are read side by side; for more, users are asked for it one by one."""


class Source(Struct, frozen=True):
    """A way to read users in the order of their ids: an index, from a key in it on."""

    rows: str
    """What follows SELECT, but for the range and the order of users."""
    bound: tuple[Any, ...]


def matching_page(chosen: Filter, asked: Asked, after: str, limit: int) -> Condition:
    """Build a table ``page (user_id, matches)`` of the *limit* users after *after*; those who match have 1."""
    users, bound = _users(chosen, asked, after, None, limit)
    test, tested = condition(chosen, asked)
    sql = (
        f"SELECT reached.user_id, CASE WHEN {test} THEN 1 ELSE 0 END AS matches FROM ({users}) AS reached"  # noqa: S608 - made of constants
        " LEFT JOIN user_profile AS profile ON profile.app = ? AND profile.user_id = reached.user_id"
    )
    return sql, [*tested, *bound, asked.app]


def matching_range(chosen: Filter, asked: Asked, after: str, until: str) -> Condition:
    """Build a table ``chosen (user_id)`` of those users above *after* and up to *until* who match."""
    users, bound = _users(chosen, asked, after, until, None)
    test, tested = condition(chosen, asked)
    sql = (
        f"SELECT reached.user_id FROM ({users}) AS reached"  # noqa: S608 - made of constants
        " LEFT JOIN user_profile AS profile ON profile.app = ? AND profile.user_id = reached.user_id"
        f" WHERE {test}"
    )
    return sql, [*bound, asked.app, *tested]


def _users(chosen: Filter, asked: Asked, after: str, until: str | None, limit: int | None) -> Condition:
    """Build a table ``(user_id)`` of users after *after*, in order: each once."""
    sources = _sources(chosen, asked)
    if sources is None:
        sources = _everybody(asked)
    range_, bound_range = " AND user_id > ?", [after]
    if until is not None:
        range_, bound_range = " AND user_id > ? AND user_id <= ?", [after, until]
    end, bound_end = ("", []) if limit is None else (" LIMIT ?", [limit])
    parts = [f"SELECT user_id FROM ({each.rows}{range_} ORDER BY user_id{end}) AS source" for each in sources]  # noqa: S608 - as above
    bound = [value for each in sources for value in (*each.bound, *bound_range, *bound_end)]
    if len(parts) == 1:
        return parts[0], bound
    return f"SELECT user_id FROM ({' UNION '.join(parts)}) AS source ORDER BY user_id{end}", bound + bound_end  # noqa: S608 - as above


def _everybody(asked: Asked) -> list[Source]:
    """List what names users: whoever has a row in one of these is known."""
    return [
        _profiles(asked),
        *(_distinct(table, asked) for table in ("device", "topic_member", "user_event")),
    ]


def _profiles(asked: Asked) -> Source:
    return Source("SELECT user_id FROM user_profile WHERE app = ?", (asked.app,))


def _distinct(table: str, asked: Asked) -> Source:
    return Source(f"SELECT DISTINCT user_id FROM {table} WHERE app = ?", (asked.app,))  # noqa: S608 - names of ours


def _sources(chosen: Filter, asked: Asked) -> list[Source] | None:
    """Return sources that together name everybody whom *chosen* can choose; None where only all users do."""
    if chosen.all_ is not None:
        known = [(_cost(part), sources) for part in chosen.all_ if (sources := _sources(part, asked)) is not None]
        return min(known, key=lambda each: each[0])[1] if known else None
    if chosen.any_ is not None:
        every = [_sources(part, asked) for part in chosen.any_]
        found: dict[Source, None] = {}
        for sources in every:
            if sources is None:
                return None
            found |= dict.fromkeys(sources)
        return list(found)
    if chosen.not_ is not None:
        return None
    return _of_leaf(chosen, asked)


def _of_leaf(chosen: Filter, asked: Asked) -> list[Source] | None:
    if chosen.topic is not None:
        rows = f"SELECT user_id FROM topic_member WHERE topic = {TOPIC}"  # noqa: S608 - as above
        return [Source(rows, (asked.app, chosen.topic))]
    if chosen.event is not None:
        return _of_event(chosen.event, asked)
    return [_distinct("device", asked) if chosen.device is not None else _profiles(asked)]


def _of_event(test: EventTest, asked: Asked) -> list[Source]:
    if test.within_days is None or test.within_days > DAYS_READ:
        return [_distinct("user_event", asked)]
    first, last, _ = event_window(test.within_days, asked.now)
    rows = "SELECT user_id FROM user_event WHERE app = ? AND name = ? AND day = ?"
    return [Source(rows, (asked.app, test.name, day)) for day in range(first, last + 1)]


def _cost(chosen: Filter) -> int:
    """Rank how many users a filter's sources name, without counting: the fewest first."""
    inner = (*(chosen.all_ or ()), *(chosen.any_ or ()))
    if inner:
        costs = [_cost(part) for part in inner]
        return min(costs) if chosen.all_ is not None else max(costs)
    if chosen.topic is not None:
        return 0
    if chosen.event is not None:
        return 1 if chosen.event.within_days is not None and chosen.event.within_days <= DAYS_READ else 4
    return 3 if chosen.device is not None else 2
