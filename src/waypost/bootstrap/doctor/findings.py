"""What a look at one thing comes to."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from msgspec import Struct


class State(StrEnum):
    """The states that a thing can be in, the best first."""

    OK = "ok"
    SKIPPED = "skipped"
    WARNING = "warning"
    PROBLEM = "problem"


class Finding(Struct, frozen=True):
    """The result of a look at one thing, and what to do about it."""

    check: str
    """The kind of thing: store, archive, clock, limits, configuration, credentials, providers, versions, queue, …"""
    subject: str
    state: State
    saw: str
    do: str = ""
    """What to do; nothing where all is well."""


def ok(check: str, subject: str, saw: str) -> Finding:
    """Say that all is well."""
    return Finding(check, subject, State.OK, saw)


def skipped(check: str, subject: str, why: str) -> Finding:
    """Say that nobody looked."""
    return Finding(check, subject, State.SKIPPED, why)


def warning(check: str, subject: str, saw: str, do: str) -> Finding:
    """Say that it works, and what may go wrong."""
    return Finding(check, subject, State.WARNING, saw, do)


def problem(check: str, subject: str, saw: str, do: str) -> Finding:
    """Say that it does not work, or soon will not."""
    return Finding(check, subject, State.PROBLEM, saw, do)


_UNITS: Final = ("bytes", "KB", "MB", "GB", "TB")


def size(n: float) -> str:
    """Write a number of bytes as people say it."""
    for unit in _UNITS[:-1]:
        if n < 1_000:
            return f"{n:.0f} {unit}" if unit == "bytes" or n >= 100 else f"{n:.1f} {unit}"
        n /= 1_000
    return f"{n:.1f} {_UNITS[-1]}"


def span(seconds: float) -> str:
    """Write seconds as people say them."""
    for unit, length_s in (("days", 86_400), ("hours", 3_600), ("minutes", 60)):
        if seconds >= 2 * length_s:
            return f"{seconds / length_s:.0f} {unit}"
    return f"{seconds:.3g} s"
