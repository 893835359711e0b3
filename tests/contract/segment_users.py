"""Random users and filters, the same for each seed: in a store, and as plain values."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from tests.memory.segments import Known
from waypost.domain.device import Platform, Registration, TokenUse
from waypost.domain.ids import AppId, DeviceId, UserId
from waypost.domain.profile import Profile
from waypost.domain.segment import Filter
from waypost.domain.time import DAY_MS, Instant, later
from waypost.domain.tracked import TrackedEvent
from waypost.stores.sql.store import Store

APP, OTHER = AppId("demo"), AppId("other")
NOW: Final = Instant(1_800_000_000_000 - 1_800_000_000_000 % DAY_MS + DAY_MS // 3)
TOPICS: Final = ("news", "sport", "nobody")
LOCALES: Final = ("de", "de-CH", "de_AT", "den", "fr", "pt-BR")
ZONES: Final = ("Europe/Zurich", "America/New_York", "Asia/Tokyo")
EVENTS: Final = ("opened", "delivered", "order.paid")
VALUES: Final[Mapping[str, tuple[Any, ...]]] = {
    "plan": ("premium", "free", "Free", "pré", "p'); --", 'a"b', "", ("premium", "trial"), True, 1),
    "age": (0, 17, 18, 18.0, 18.5, -3, "18", 2**53, False, 1e15),
    "since": ("2026-01-31", "2026-02-01", "2025-12-31", "", 20260131),
    "likes": (("tennis", "chess"), ("chess",), (), "tennis"),
    "vip": (True, False, 1, 0, "true"),
}
BOUNDS: Final[Mapping[str, tuple[Any, ...]]] = {
    "plan": ("premium", "free"),
    "age": (18, 18.5, 0, 2**53),
    "since": ("2026-01-31", "2026"),
    "likes": ("tennis",),
    "vip": (1,),
}
_filter: Final = msgspec.convert


async def fill(store: Store, seed: int, count: int) -> dict[UserId, Known]:
    """Put *count* random users into *store*, and as many of the same ids into another app; return those of APP."""
    chance = random.Random(seed)
    for app in (APP, OTHER):
        for name in TOPICS:
            await store.topics.put(app, name, "", is_open=False, at=NOW)
    users: dict[UserId, Known | None] = {}
    for n in range(count):
        user = UserId(f"{chance.choice(('u', 'é', '🙂', 'U', '0'))}{n}")
        for app in (OTHER, APP):
            users[user] = await _put(store, chance, app, user)
    return {user: known for user, known in users.items() if known is not None}


async def _put(store: Store, chance: random.Random, app: AppId, user: UserId) -> Known | None:
    """Put one user; None for one of whom nothing is known."""
    known = Known()
    has_profile = chance.random() < 0.8
    if has_profile:
        attributes = {name: chance.choice(values) for name, values in VALUES.items() if chance.random() < 0.6}
        known.profile = Profile(
            locale=chance.choice((None, *LOCALES)), time_zone=chance.choice((None, *ZONES)), attributes=attributes
        )
        await store.profiles.put(app, user, known.profile, NOW)
    for n in range(chance.choice((0, 0, 1, 2))):
        await _register(store, chance, app, user, n)
    known.devices = await store.devices.of_user(app, user, inactive=True)
    known.topics = frozenset(name for name in TOPICS[:2] if chance.random() < 0.3)
    for name in known.topics:
        await store.topics.change(app, name, [user], [], NOW)
    known.events = await _track(store, chance, app, user)
    return known if has_profile or known.devices or known.topics or known.events else None


async def _register(store: Store, chance: random.Random, app: AppId, user: UserId, n: int) -> None:
    registration = Registration(
        app,
        user,
        DeviceId(f"d{n}"),
        Platform(chance.choice(("ios", "android", "web"))),
        f"{app}-{user}-{n}",
        app_version=chance.choice((None, "1.0", "2.0")),
        locale=chance.choice((None, *LOCALES)),
        token_use=chance.choice((TokenUse.ALERT, TokenUse.ALERT, TokenUse.VOIP)),
    )
    await store.devices.upsert(registration, later(NOW, -chance.choice((0, 1, 7, 30, 31)) * DAY_MS), 0)
    if chance.random() < 0.2:
        await store.devices.deactivate(app, user, registration.device_id)


async def _track(
    store: Store, chance: random.Random, app: AppId, user: UserId
) -> Mapping[tuple[str, int], tuple[int, Instant]]:
    ago = (0, 1, DAY_MS // 2, 7 * DAY_MS - 1, 7 * DAY_MS, 7 * DAY_MS + 1, 30 * DAY_MS, 90 * DAY_MS)
    events = [
        TrackedEvent(app, user, chance.choice(EVENTS), later(NOW, -chance.choice(ago)))
        for _ in range(chance.choice((0, 0, 1, 3)))
    ]
    await store.user_events.track(events)
    counted: dict[tuple[str, int], tuple[int, Instant]] = {}
    for each in events:
        key = each.name, each.at // DAY_MS
        count, last_at = counted.get(key, (0, each.at))
        counted[key] = count + 1, max(last_at, each.at)
    return counted


def random_filter(chance: random.Random, depth: int = 0) -> Filter:
    """Make a filter, of filters where it is not too deep yet."""
    return _filter(_tree(chance, depth), Filter)


def _tree(chance: random.Random, depth: int) -> dict[str, Any]:
    if depth < 3 and chance.random() < 0.5:
        if chance.random() < 0.3:
            return {"not": _tree(chance, depth + 1)}
        return {chance.choice(("and", "or")): [_tree(chance, depth + 1) for _ in range(chance.randint(1, 3))]}
    return chance.choice((_attribute, _attribute, _locale, _zone, _device, _topic, _event))(chance)


def _attribute(chance: random.Random) -> dict[str, Any]:
    name = chance.choice(list(VALUES))
    scalars = [value for value in VALUES[name] if not isinstance(value, tuple)]
    test: dict[str, Any] = {"name": name}
    kind = chance.random()
    if kind < 0.4:
        test["is"] = chance.choice(scalars)
    elif kind < 0.6:
        test["in"] = chance.sample(scalars, min(3, len(scalars)))
    elif kind < 0.9:
        test[chance.choice(("above", "at_least", "below", "at_most"))] = chance.choice(BOUNDS[name])
    return {"attribute": test}


def _locale(chance: random.Random) -> dict[str, Any]:
    return {"locale": chance.sample(("de", "de-CH", "fr", "en"), 2)}


def _zone(chance: random.Random) -> dict[str, Any]:
    return {"time_zone": [chance.choice(ZONES)]}


def _device(chance: random.Random) -> dict[str, Any]:
    test = {
        "platforms": [chance.choice(("ios", "android"))],
        "app_versions": ["2.0"],
        "locales": ["de"],
        "seen_within_days": chance.choice((1, 7, 30)),
    }
    return {"device": {name: value for name, value in test.items() if chance.random() < 0.4}}


def _topic(chance: random.Random) -> dict[str, Any]:
    return {"topic": chance.choice((*TOPICS, "unknown"))}


def _event(chance: random.Random) -> dict[str, Any]:
    test: dict[str, Any] = {"name": chance.choice(EVENTS)}
    if chance.random() < 0.8:
        test["within_days"] = chance.choice((1, 7, 30, 31, 60))
    if chance.random() < 0.4:
        test["at_least"] = chance.choice((2, 3))
    return {"event": test}
