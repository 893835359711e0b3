"""What counts is a reader beside the deliveries: off it is not there, and on it adds nothing to their way."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from waypost.bootstrap import features
from waypost.bootstrap.features import parts_of, readers, with_features
from waypost.config import AppSettings, Config
from waypost.domain.ids import AppId
from waypost.features.analytics import ANALYTICS
from waypost.features.analytics.settings import AnalyticsSettings
from waypost.features.parts import Ground
from waypost.runtime.duties import DutyContext
from waypost.stores.sql.rollup import READER


def told(*, enabled: bool) -> dict[str, bool]:
    """The readers of a worker, and whether each stores its own position."""
    config = Config(apps={AppId("demo"): AppSettings()}, features={ANALYTICS.name: AnalyticsSettings(enabled=enabled)})
    nothing: Any = None
    duty_context = DutyContext(nothing, nothing, nothing, nothing, nothing, nothing, nothing, 1)
    ground = Ground(nothing, nothing, nothing, nothing, nothing, config, nothing)
    grounds = {
        each.name: msgspec.structs.replace(ground, settings=features.settings_of(config, each))
        for each in features.FEATURES
    }
    return {each.name: each.keeps_position for each in with_features(duty_context, grounds).readers}


@pytest.mark.parametrize("enabled", [False, True])
def test_the_journal_is_read_for_counts_only_where_they_are_wanted(enabled: bool) -> None:
    assert told(enabled=enabled).get(READER) is (True if enabled else None)
    assert READER in readers(), "its position moves with the store all the same"


def test_counting_adds_nothing_to_the_way_of_a_delivery() -> None:
    parts = parts_of(ANALYTICS)
    assert (parts.rules, parts.facts, parts.renders) == ((), None, None)
