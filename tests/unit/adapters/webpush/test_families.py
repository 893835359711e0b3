"""What single push services want."""

from __future__ import annotations

import pytest

from waypost.channels.push.endpoints import take_apart
from waypost.channels.webpush.families import Family, family_of, ttl_headers


@pytest.mark.parametrize(
    ("host", "family"),
    [
        ("web.push.apple.com", Family.APPLE),
        ("wns2-par02p.notify.windows.com", Family.WINDOWS),
        ("fcm.googleapis.com", Family.ANY),
        ("updates.push.services.mozilla.com", Family.ANY),
        ("push.apple.com.evil.example", Family.ANY),
        ("evilnotify.windows.com", Family.ANY),
    ],
)
def test_a_service_is_known_by_whole_labels(host: str, family: Family) -> None:
    endpoint = take_apart(f"https://{host}/x")
    assert endpoint is not None
    assert family_of(endpoint) is family


@pytest.mark.parametrize(
    ("family", "ttl_s", "said"),
    [
        (Family.ANY, 0, {"ttl": "0"}),
        (Family.WINDOWS, 0, {"ttl": "0", "x-wns-cache-policy": "no-cache"}),
        (Family.APPLE, 0, {"ttl": "1"}),
        (Family.ANY, 60, {"ttl": "60"}),
        (Family.WINDOWS, 60, {"ttl": "60"}),
        (Family.APPLE, 60, {"ttl": "60"}),
    ],
)
def test_now_or_never_is_said_as_each_service_takes_it(family: Family, ttl_s: int, said: dict[str, str]) -> None:
    assert dict(ttl_headers(family, ttl_s)) == said
