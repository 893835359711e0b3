"""Settings of the drop-in for the notifications service: by environment alone, as that service had them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, get_type_hints

import msgspec
from msgspec import Struct

from waypost.channels.fcm.settings import FcmSettings
from waypost.compat.jobs_stream.settings import StreamSettings, TableSettings
from waypost.domain.errors import ConfigurationError
from waypost.stores.redis.settings import RedisSettings
from waypost.telemetry.events import Level

PROFILE: Final = "notifications-service"
REQUIRED: Final = ("REDIS_URL", "DATABASE_URL", "GOOGLE_APPLICATION_CREDENTIALS")


class DropIn(Struct, frozen=True, kw_only=True):
    """The settings that the operator of a notifications service can give."""

    redis: RedisSettings
    stream: StreamSettings
    tables: TableSettings
    fcm: FcmSettings
    level: Level = Level.INFO


VARIABLES: Final[Mapping[str, tuple[type[Struct], str]]] = {
    "REDIS_URL": (RedisSettings, "url"),
    "REDIS_CA_FILE": (RedisSettings, "ca_file"),
    "DATABASE_URL": (TableSettings, "url"),
    "GOOGLE_APPLICATION_CREDENTIALS": (FcmSettings, "service_account_file"),
    "STREAM_NAME": (StreamSettings, "stream"),
    "CONSUMER_GROUP": (StreamSettings, "group"),
    "AUTOCLAIM_MIN_IDLE_MS": (StreamSettings, "min_idle_ms"),
    "MAX_DELIVERY_COUNT": (StreamSettings, "max_deliveries"),
    "FCM_ENDPOINT": (FcmSettings, "endpoint"),
    "FCM_CA_FILE": (FcmSettings, "ca_file"),
    "TOKEN_TABLE": (TableSettings, "token_table"),
    "TOKEN_COLUMNS": (TableSettings, "token_columns"),
    "LOG_TABLE": (TableSettings, "log_table"),
    "LOG_COLUMNS": (TableSettings, "log_columns"),
    "LOG_LEVEL": (DropIn, "level"),
}
"""Every variable, and what it sets."""

_ALWAYS: Final[dict[str, Any]] = {
    # As the service's own table has it (requirements S0-T1): these codes speak of the token.
    "invalid_argument": "remove",
    "sender_id_mismatch": "remove",
    "form": PROFILE,
}
_SECTIONS: Final = {RedisSettings: "redis", FcmSettings: "fcm"}


def drop_in(environ: Mapping[str, str]) -> DropIn:
    """Read the variables; ConfigurationError names those that are missing, or the one that is wrong, and no value.

    A variable that is empty counts as not set.
    """
    missing = [name for name in REQUIRED if not environ.get(name)]
    if missing:
        raise ConfigurationError(", ".join(missing), "must be set")
    found: dict[type[Struct], dict[str, Any]] = {}
    for name, (section, key) in VARIABLES.items():
        if environ.get(name):
            kind = get_type_hints(section, include_extras=True)[key]
            found.setdefault(section, {})[key] = _read(name, environ[name], kind)
    return DropIn(
        redis=RedisSettings(**found[RedisSettings]),
        stream=StreamSettings(**found.get(StreamSettings, {})),
        tables=TableSettings(**found[TableSettings]),
        fcm=FcmSettings(**_ALWAYS, **found[FcmSettings]),
        **found.get(DropIn, {}),
    )


def variable_of(path: str) -> str:
    """Name the variable that sets what is at *path* in a configuration; the path itself where there is none."""
    section = ".".join(path.split(".")[-2:])
    return next(
        (name for name, (kind, key) in VARIABLES.items() if f"{_SECTIONS.get(kind)}.{key}" == section),
        path,
    )


def _read(name: str, text: str, kind: Any) -> Any:
    value = dict(_pair(name, each) for each in text.split(",")) if kind == dict[str, str] else text
    try:
        return msgspec.convert(value, kind, strict=False)
    except msgspec.ValidationError as error:
        why = str(error)
        raise ConfigurationError(name, "none of the words allowed here" if "enum" in why else why) from None


def _pair(name: str, text: str) -> tuple[str, str]:
    meaning, _, column = (part.strip() for part in text.partition("="))
    if not meaning or not column:
        raise ConfigurationError(name, "expected meaning=column, several separated by commas")
    return meaning, column
