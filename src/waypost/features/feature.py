"""A feature as a value: what reading a configuration and the command line need of it, and where the rest is."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct


class Feature(Struct, frozen=True, kw_only=True):
    """A feature: one thing that users can do beside sending, in a folder of its own.

    It imports no web framework and no database, so that every command starts fast; its Parts may.
    """

    name: str
    """The name, also of the section ``features.<name>`` of the configuration."""
    docs: str
    """One sentence for the table of features in the documentation."""
    parts: str
    """The place of its Parts: ``module:name``."""
    settings: type[Struct] | None = None
    """The settings in its section: frozen, with a text under each field; None where it has none."""
    commands: Mapping[str, str] = {}
    """The place of each of its commands, ``module:name``, by the command's name."""
