"""What may be written in ``redis.url``, and what is said of the rest."""

from __future__ import annotations

import pytest

from waypost.domain.errors import ConfigurationError
from waypost.stores.redis.address import address_of, sentinels_of
from waypost.stores.redis.settings import RedisSettings


@pytest.mark.parametrize(
    ("url", "wanted"),
    [
        ("redis://localhost", ("localhost", 6379, 0, None, None, False)),
        ("redis://[::1]:1/2", ("::1", 1, 2, None, None, False)),
        ("redis://:a%3Ab@h", ("h", 6379, 0, None, "a:b", False)),
        ("rediss://u:p@h:7000/0", ("h", 7000, 0, "u", "p", True)),
    ],
)
def test_a_url_says_where_and_how(url: str, wanted: tuple[object, ...]) -> None:
    found = address_of(RedisSettings(url=url))
    assert (found.host, found.port, found.db, found.username, found.password, found.tls is not None) == wanted


@pytest.mark.parametrize(
    "settings",
    [
        RedisSettings(url="http://secret@h"),
        RedisSettings(url="redis://"),
        RedisSettings(url="redis://secret@h:port"),
        RedisSettings(url="redis://:secret@h/zero"),
        RedisSettings(url="redis://:secret@h/1", cluster=True),
        RedisSettings(url="redis://:secret@h", cluster=True, sentinels=("s:1",)),
        RedisSettings(url="rediss://:secret@h", ca_file="/nowhere"),
    ],
)
def test_what_means_nothing_is_named_by_its_key_and_not_repeated(settings: RedisSettings) -> None:
    with pytest.raises(ConfigurationError) as told:
        address_of(settings)
    assert told.value.path.startswith("redis.")
    assert "secret" not in str(told.value)


def test_sentinels_are_hosts_with_a_port() -> None:
    found = sentinels_of(RedisSettings(url="redis://main", sentinels=("a", "b:1", "[::1]:2")))
    assert found == (("a", 26379), ("b", 1), ("::1", 2))
    with pytest.raises(ConfigurationError, match=r"redis\.sentinels\[0\]"):
        sentinels_of(RedisSettings(url="redis://main", sentinels=(":x",)))
