"""Where the settings end."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.shows import shows
from waypost.bootstrap.registry import load
from waypost.channels.apns.gateway import MOST_SOCKETS, OTHER_CONNECTIONS
from waypost.config import AppSettings
from waypost.domain.channel import APNS
from waypost.domain.errors import ConfigurationError
from waypost.domain.ids import AppId

SECTION = "key_file: k.p8, key_id: ABCDE12345, team_id: FGHIJ67890, topic: t"


def read(folder: Path, app: str) -> AppSettings:
    """The settings of the app ``demo``."""
    path = folder / "waypost.yaml"
    path.write_text(f"apps: {{demo: {{{app}}}}}")
    return load(path, {}).apps[AppId("demo")]


@shows("S1-139")
@pytest.mark.parametrize("cap", [0, 1, 10, 50])
def test_a_user_may_have_up_to_50_devices_or_any_number(tmp_path: Path, cap: int) -> None:
    """Requirements S1-139: per app, and 0 is no cap."""
    assert read(tmp_path, f"device_cap: {cap}").device_cap == cap


@pytest.mark.parametrize("cap", [-1, 51])
def test_another_cap_is_refused_by_its_path(tmp_path: Path, cap: int) -> None:
    with pytest.raises(ConfigurationError) as caught:
        read(tmp_path, f"device_cap: {cap}")
    assert caught.value.path == "apps.demo.device_cap"


@shows("S1-103")
def test_apns_has_25_connections_and_never_more_than_50(tmp_path: Path) -> None:
    """Requirements S1-103: of both kinds and to both environments together, and of sockets."""
    assert read(tmp_path, f"apns: {{{SECTION}}}").senders[APNS].connections == 25
    most = read(tmp_path, f"apns: {{{SECTION}, connections: 40, silent_connections: 5}}").senders[APNS]
    assert most.connections + most.silent_connections + OTHER_CONNECTIONS == MOST_SOCKETS == 50
    for name, over in (("connections", 41), ("silent_connections", 6)):
        with pytest.raises(ConfigurationError) as caught:
            read(tmp_path, f"apns: {{{SECTION}, {name}: {over}}}")
        assert caught.value.path == f"apps.demo.apns.{name}"
