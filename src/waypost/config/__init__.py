"""The configuration: what an operator can say, and reading it."""

from waypost.config.loading import load
from waypost.config.settings import (
    AppSettings,
    Config,
    Handoff,
    LaneSettings,
    LimitSettings,
    LogFormat,
    LogSettings,
    RetentionSettings,
    SourceName,
    SourceSettings,
    Stack,
)

__all__ = [
    "AppSettings",
    "Config",
    "Handoff",
    "LaneSettings",
    "LimitSettings",
    "LogFormat",
    "LogSettings",
    "RetentionSettings",
    "SourceName",
    "SourceSettings",
    "Stack",
    "load",
]
