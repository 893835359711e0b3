"""A proposed policy: sections of one app, from a file, in the place of today's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from waypost.config.building import Builder
from waypost.config.loading import read_tree
from waypost.config.settings import AppSettings, Config
from waypost.domain.errors import ConfigurationError
from waypost.domain.ids import AppId
from waypost.domain.profile import zone_faults
from waypost.ports.plugin import SenderPlugin

SECTIONS: Final = ("types", "preferences", "defaults", "time_zone")
"""What decides who gets what, when: sections of an app."""


def proposed(
    config: Config, app: AppId, file: Path, plugins: Sequence[SenderPlugin], sections: Mapping[str, type[Struct]]
) -> Config:
    """Return *config* with the sections of *app* that *file* has; ConfigurationError names what is wrong in it."""
    tree = read_tree(file)
    for name in tree:
        if name not in SECTIONS:
            raise ConfigurationError(str(name), f"is no part of a policy: {', '.join(SECTIONS)} are")
    said: AppSettings = Builder(file.parent, plugins, sections).build(AppSettings, tree, f"apps.{app}")
    for fault in zone_faults(said.time_zone):
        raise ConfigurationError(f"apps.{app}.{fault.path}", fault.why)
    changed = replace(config.apps[app], **{name: getattr(said, name) for name in tree})
    return replace(config, apps={**config.apps, app: changed})
