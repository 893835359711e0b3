"""What the drop-in is told by its environment."""

from __future__ import annotations

import pytest

from tests.shows import shows
from waypost.compat.jobs_stream.settings import StreamSettings
from waypost.config.drop_in import REQUIRED, VARIABLES, drop_in, variable_of
from waypost.domain.errors import ConfigurationError
from waypost.telemetry import Level

LEAST = {"REDIS_URL": "redis://r", "DATABASE_URL": "postgresql://p/db", "GOOGLE_APPLICATION_CREDENTIALS": "fcm.json"}


@shows("S0-22", "S0-25")
def test_the_defaults_are_the_services() -> None:
    """Requirements S0-01, S0-04, S0-22 and S0-25."""
    found = drop_in(LEAST)
    assert found.stream == StreamSettings(
        stream="stream.notifications.jobs", group="notifications-service", min_idle_ms=30_000, max_deliveries=5
    )
    assert (found.tables.token_table, found.tables.log_table) == (
        "public.device_token",
        "notifications.notification_log",
    )


@shows("S0-25")
def test_every_variable_is_read() -> None:
    found = drop_in(
        LEAST
        | {
            "STREAM_NAME": "jobs",
            "CONSUMER_GROUP": "g",
            "AUTOCLAIM_MIN_IDLE_MS": "1500",
            "MAX_DELIVERY_COUNT": "3",
            "FCM_ENDPOINT": "https://lab",
            "FCM_CA_FILE": "ca.pem",
            "REDIS_CA_FILE": "redis.pem",
            "TOKEN_TABLE": "t",
            "TOKEN_COLUMNS": "user = owner, token=secret",
            "LOG_TABLE": "l",
            "LOG_COLUMNS": "status=state",
            "LOG_LEVEL": "warning",
        }
    )
    assert found.stream == StreamSettings(stream="jobs", group="g", min_idle_ms=1500, max_deliveries=3)
    assert (found.fcm.endpoint, found.fcm.ca_file, found.redis.ca_file) == ("https://lab", "ca.pem", "redis.pem")
    assert found.tables.token_columns == {"user": "owner", "token": "secret"}
    assert (found.tables.token_table, found.tables.log_table, found.tables.log_columns) == (
        "t",
        "l",
        {"status": "state"},
    )
    assert found.level is Level.WARNING


@shows("S0-28")
@pytest.mark.parametrize("name", REQUIRED)
@pytest.mark.parametrize("value", [None, ""])
def test_a_required_one_that_is_missing_is_named(name: str, value: str | None) -> None:
    """Requirement S0-28."""
    given = {**LEAST, name: value}
    with pytest.raises(ConfigurationError, match=name):
        drop_in({key: text for key, text in given.items() if text is not None})


def test_all_that_are_missing_are_named_at_once() -> None:
    with pytest.raises(ConfigurationError, match="REDIS_URL, DATABASE_URL, GOOGLE_APPLICATION_CREDENTIALS"):
        drop_in({})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("AUTOCLAIM_MIN_IDLE_MS", "soon"),
        ("AUTOCLAIM_MIN_IDLE_MS", "1"),
        ("MAX_DELIVERY_COUNT", "0"),
        ("TOKEN_COLUMNS", "secret"),
        ("LOG_COLUMNS", "=secret"),
        ("LOG_LEVEL", "secret"),
    ],
)
def test_one_that_is_wrong_is_named_without_its_value(name: str, value: str) -> None:
    with pytest.raises(ConfigurationError, match=name) as caught:
        drop_in(LEAST | {name: value})
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("path", "variable"),
    [
        ("apps.notifications-service.fcm.service_account_file", "GOOGLE_APPLICATION_CREDENTIALS"),
        ("apps.notifications-service.fcm.ca_file", "FCM_CA_FILE"),
        ("redis.url", "REDIS_URL"),
        ("redis.ca_file", "REDIS_CA_FILE"),
        ("TOKEN_TABLE", "TOKEN_TABLE"),
    ],
)
def test_the_path_of_a_setting_is_told_as_its_variable(path: str, variable: str) -> None:
    assert variable_of(path) == variable
    assert variable in VARIABLES
