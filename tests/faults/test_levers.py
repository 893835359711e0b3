"""Nodes on Java take too long to come back for the daily run: here their levers are shown."""

from __future__ import annotations

import pytest

from scripts.services.service import Service
from tests.levers import comes_back, stands_still

pytestmark = pytest.mark.timeout(900)


@pytest.fixture(params=["kafka_three", "cassandra_three"])
def three(request: pytest.FixtureRequest) -> Service:
    """Three nodes that this test may harm."""
    service = request.getfixturevalue(request.param)
    assert isinstance(service, Service)
    return service


def test_a_killed_node_comes_back_with_its_data_and_an_ended_one_too(three: Service) -> None:
    """Among others, which go on meanwhile."""
    comes_back(three, 2)


def test_a_frozen_node_stands_still_until_it_is_thawed(three: Service) -> None:
    """It keeps its connections."""
    stands_still(three, 3)
