"""A channel: the way in which a target is reached."""

from __future__ import annotations

from typing import Final, NewType

Channel = NewType("Channel", str)
"""The way in which a target is reached; each is spoken by a sender, whose plug-in names it."""

PUSH: Final = "push"
"""The family of the channels that reach an installed app or a browser: where a submission names none, it is meant."""

APNS: Final = Channel("apns")
"""Named here because push types and token uses are its own, and part of every notification."""
