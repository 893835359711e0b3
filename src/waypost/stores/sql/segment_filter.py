"""Filters of users in SQL: one condition on a user ``reached.user_id`` and their row ``profile``, which may be missing.

user_profile    joined once     device, topic_member, user_event    looked up by user where the filter asks for them

What a filter says is bound and never part of the text. A condition is true or false, never
NULL, so that NOT is its opposite.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec
from msgspec import Struct

from waypost.domain.ids import AppId
from waypost.domain.segment import DeviceTest, EventTest, Filter
from waypost.domain.time import DAY_MS, Instant, later
from waypost.stores.sql.attribute_tests import Condition, attribute_test
from waypost.stores.sql.driver import Dialect

TOPIC: Final = "(SELECT number FROM topic WHERE app = ? AND name = ?)"
# LIMIT 1 OFFSET 0 keeps it apart on PostgreSQL: joined freely, a table that is small or not analysed yet is read from
# end to end for each page.
_ONE: Final = "LIMIT 1 OFFSET 0"
_HEARS: Final = f"""\
EXISTS (SELECT 1 FROM topic_member AS heard
WHERE heard.app = ? AND heard.user_id = reached.user_id AND heard.topic = {TOPIC} {_ONE})
"""  # noqa: S608 - a constant
_DEVICE: Final = f"""\
EXISTS (SELECT 1 FROM device AS held
WHERE held.app = ? AND held.user_id = reached.user_id AND held.active = 1 AND held.token_use = 'alert'{{more}} {_ONE})
"""  # noqa: S608 - as above
_EVENTS: Final = "FROM user_event AS had WHERE had.app = ? AND had.user_id = reached.user_id AND had.name = ?{more}"


class Asked(Struct, frozen=True):
    """The app whose users are asked for, and the time from which days are counted back."""

    app: AppId
    now: Instant
    dialect: Dialect


def condition(chosen: Filter, asked: Asked) -> Condition:
    """Build the condition that a user is one of *chosen*."""
    if chosen.all_ is not None or chosen.any_ is not None:
        parts = [condition(part, asked) for part in chosen.all_ or chosen.any_ or ()]
        word = " AND " if chosen.all_ is not None else " OR "
        return f"({word.join(sql for sql, _ in parts)})", [value for _, bound in parts for value in bound]
    if chosen.not_ is not None:
        sql, bound = condition(chosen.not_, asked)
        return f"(NOT {sql})", bound
    return _leaf(chosen, asked)


def _leaf(chosen: Filter, asked: Asked) -> Condition:
    if chosen.attribute is not None:
        return attribute_test(chosen.attribute, asked.dialect)
    if chosen.locale is not None:
        sql, bound = _locales("profile.locale", chosen.locale)
        return f"coalesce({sql}, FALSE)", bound
    if chosen.time_zone is not None:
        return f"coalesce(profile.time_zone IN ({asked.dialect.texts}), FALSE)", [_json(chosen.time_zone)]
    if chosen.device is not None:
        return _device(chosen.device, asked)
    if chosen.topic is not None:
        return _HEARS, [asked.app, asked.app, chosen.topic]
    assert chosen.event is not None, "a filter says exactly one thing"
    return _event(chosen.event, asked)


def _device(test: DeviceTest, asked: Asked) -> Condition:
    more: list[str] = []
    bound: list[Any] = [asked.app]
    for column, words in (("held.platform", test.platforms), ("held.app_version", test.app_versions)):
        if words:
            more.append(f"{column} IN ({asked.dialect.texts})")
            bound.append(_json(words))
    if test.locales:
        sql, values = _locales("held.locale", test.locales)
        more.append(sql)
        bound += values
    if test.seen_within_days is not None:
        more.append("held.last_seen_at >= ?")
        bound.append(later(asked.now, -test.seen_within_days * DAY_MS))
    return _DEVICE.format(more="".join(f" AND {each}" for each in more)), bound


def _event(test: EventTest, asked: Asked) -> Condition:
    more, since = "", tuple[int, ...]()
    if test.within_days is not None:
        more, since = (
            " AND had.day >= ? AND had.day <= ? AND had.last_at >= ?",
            event_window(test.within_days, asked.now),
        )
    bound = [asked.app, test.name, *since]
    events = _EVENTS.format(more=more)
    if test.at_least == 1:
        return f"EXISTS (SELECT 1 {events} {_ONE})", bound
    return f"((SELECT coalesce(sum(had.count), 0) {events}) >= ?)", [*bound, test.at_least]


def event_window(days: int, now: Instant) -> tuple[int, int, Instant]:
    """Return the first day, the last and the first instant of the last *days* times 24 hours.

    The last is tomorrow: the clock of who tracked an event may be ahead of ours.
    """
    since = later(now, -days * DAY_MS)
    return since // DAY_MS, now // DAY_MS + 1, since


def _locales(column: str, locales: Sequence[str]) -> Condition:
    begins = (f"{column} = ? OR substr({column}, 1, {len(each) + 1}) IN (?, ?)" for each in locales)
    bound = [each for locale in locales for each in (locale, f"{locale}-", f"{locale}_")]
    return f"({' OR '.join(begins)})", bound


def _json(words: Sequence[str]) -> str:
    return msgspec.json.encode(words).decode()
