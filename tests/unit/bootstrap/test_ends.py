"""The settings that say how devices, erased users and hidden notifications end reach the duties that end them."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from waypost.bootstrap.delivery_context import chores_of
from waypost.config import AppSettings, Config, RetentionSettings
from waypost.domain.ids import AppId
from waypost.domain.time import Instant
from waypost.features.feed.parts import drop_hidden
from waypost.pipeline.age import DeviceAges
from waypost.pipeline.sweep import PAGE

KEPT, OTHER = AppId("kept"), AppId("other")


def config(**retention: Any) -> Config:
    """Two apps, of which one deletes dead devices."""
    apps = {KEPT: AppSettings(), OTHER: AppSettings(dead_devices="delete")}
    return Config(apps=apps, retention=RetentionSettings(**retention))


class Anything:
    """A store, of which nothing is asked here."""

    def __getattr__(self, name: str) -> Any:
        return Anything()


def test_what_ends_is_what_the_settings_say() -> None:
    parts: Any = Anything()
    off = chores_of(config(), parts, parts, parts, parts)
    assert (off.deletes_dead, off.ages, off.deletes_erased) == (frozenset({OTHER}), DeviceAges(), False)
    ages = DeviceAges(unused_days=60, inactive_days=90)
    on = chores_of(config(erased="delete", devices=ages), parts, parts, parts, parts)
    assert (on.ages, on.deletes_erased) == (ages, True)


@pytest.mark.parametrize(("setting", "asked"), [("keep", []), ("delete", [PAGE])])
def test_what_readers_hid_is_dropped_where_the_setting_says_so(setting: str, asked: list[int]) -> None:
    pages: list[int] = []

    async def drop(n: int) -> int:
        pages.append(n)
        return 0

    store = SimpleNamespace(retention=SimpleNamespace(drop_hidden=drop))
    ground: Any = SimpleNamespace(store=store, config=config(hidden=setting))
    assert asyncio.run(drop_hidden(ground, Instant(0))) == 0
    assert pages == asked
