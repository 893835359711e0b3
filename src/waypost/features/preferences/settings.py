"""Settings of preferences: what makes no sense in the types that an app declares."""

from __future__ import annotations

from waypost.config import AppSettings, Config
from waypost.domain.errors import ConfigurationError
from waypost.domain.preferences import LONGEST_CAP_S, Cap
from waypost.domain.profile import zone_faults
from waypost.domain.time import SECOND_MS


def check_preferences(config: Config) -> None:
    """Refuse, with ConfigurationError, a time zone that nobody knows, and a cap over more than counts are kept for."""
    for name, app in config.apps.items():
        for fault in zone_faults(app.preferences.time_zone):
            raise ConfigurationError(f"apps.{name}.preferences.{fault.path}", fault.why)
        for path, cap in _caps(app).items():
            if cap is not None and (cap.rolls_ms or 0) > LONGEST_CAP_S * SECOND_MS:
                raise ConfigurationError(f"apps.{name}.{path}.per", "is 31 days at most")


def _caps(app: AppSettings) -> dict[str, Cap | None]:
    caps: dict[str, Cap | None] = {"preferences.cap": app.preferences.cap}
    for kind, settings in app.types.items():
        caps[f"types.{kind}.cap"] = settings.cap
        caps |= {f"types.{kind}.channel_caps.{channel}": cap for channel, cap in settings.channel_caps.items()}
    return caps
