"""The enums of the domain are sets of words."""

from __future__ import annotations

from enum import StrEnum


class Words(StrEnum):
    """An enum whose words hash as the text they are: an enum's own hash is Python code, too slow for hot tables."""

    __hash__ = str.__hash__
