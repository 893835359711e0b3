"""Provider tokens are what Apple asks for, one for all processes, each used for 20 minutes at least."""

from __future__ import annotations

from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from hypothesis import given
from hypothesis import strategies as st

from tests.shows import shows
from tests.unit.adapters.deliveries import NOW
from waypost.channels.apns import credentials
from waypost.channels.apns.credentials import SHORTEST_USE_MS, SLOT_MS, ProviderTokens, identify
from waypost.channels.apns.settings import ApnsSettings
from waypost.channels.push.signing import signed_es256
from waypost.domain.errors import ConfigurationError
from waypost.domain.time import HOUR_MS, MINUTE_MS, Instant, later

KEY = ec.generate_private_key(ec.SECP256R1())
SLOT = Instant(NOW - NOW % SLOT_MS)


def tokens() -> ProviderTokens:
    return ProviderTokens(KEY, "ABCDE12345", "FGHIJ67890")


@shows("S1-99")
def test_a_provider_token_is_what_apple_describes_and_another_library_verifies_it() -> None:
    token = tokens().at(NOW)
    assert jwt.get_unverified_header(token) == {"alg": "ES256", "kid": "ABCDE12345"}
    claims = jwt.decode(token, KEY.public_key(), algorithms=["ES256"], options={"verify_iat": False})
    assert claims == {"iss": "FGHIJ67890", "iat": SLOT // 1000}


def test_all_processes_with_one_key_present_one_token() -> None:
    assert tokens().at(NOW) == tokens().at(later(SLOT, SLOT_MS - 1))


@shows("S1-101")
def test_a_token_is_signed_once_and_renewed_after_its_slot() -> None:
    ours = tokens()
    first = ours.at(SLOT)
    assert ours.at(later(SLOT, SLOT_MS - 1)) is first
    second = ours.at(later(SLOT, SLOT_MS))
    assert second != first
    assert ours.at(later(SLOT, SLOT_MS + MINUTE_MS)) is second


@shows("S1-101")
def test_a_thousand_sends_at_the_moment_of_renewal_sign_one_token(monkeypatch: pytest.MonkeyPatch) -> None:
    """Requirements S1-101: all on the event loop, from which each sender takes its token."""
    ours, signed = tokens(), []
    old = ours.at(SLOT)

    def counted(*said: Any) -> str:
        signed.append(said)
        return signed_es256(*said)

    monkeypatch.setattr(credentials, "signed_es256", counted)
    found = {ours.at(later(SLOT, SLOT_MS)) for _ in range(1_000)}
    assert (len(found), len(signed), old in found) == (1, 1, False)


def test_a_refused_token_is_renewed_at_most_every_20_minutes() -> None:
    ours = tokens()
    first = ours.at(later(SLOT, 19 * MINUTE_MS))
    assert ours.renew(first, later(SLOT, 19 * MINUTE_MS)) is first
    renewed = ours.renew(first, later(SLOT, 20 * MINUTE_MS))
    assert renewed != first
    assert ours.renew(first, later(SLOT, 21 * MINUTE_MS)) is renewed
    assert ours.renew(renewed, later(SLOT, 21 * MINUTE_MS)) is renewed
    assert ours.at(later(SLOT, 40 * MINUTE_MS - 1)) is renewed
    assert ours.at(later(SLOT, 40 * MINUTE_MS)) is not renewed


@given(start_ms=st.integers(0, 2 * SLOT_MS), waits_ms=st.lists(st.integers(1, 40 * MINUTE_MS), max_size=60))
def test_no_process_shows_two_tokens_within_20_minutes_nor_one_older_than_45(
    start_ms: int, waits_ms: list[int]
) -> None:
    """Whenever in a slot it begins, and whenever it sends; all tokens are of the slots that every process has."""
    ours = tokens()
    now = later(SLOT, start_ms)
    shown, since = ours.at(now), now
    for wait_ms in waits_ms:
        now = later(now, wait_ms)
        token = ours.at(now)
        if token is not shown:
            assert now - since >= SHORTEST_USE_MS
            shown, since = token, now
        claims = jwt.decode(token, options={"verify_signature": False})
        assert claims["iat"] * 1000 % SLOT_MS == 0
        assert 0 <= now - claims["iat"] * 1000 <= 45 * MINUTE_MS


def test_a_clock_that_was_set_back_gives_a_token_of_the_new_time() -> None:
    ours = tokens()
    ours.at(later(NOW, 24 * HOUR_MS))
    claims = jwt.decode(ours.at(NOW), KEY.public_key(), algorithms=["ES256"], options={"verify_iat": False})
    assert claims["iat"] == SLOT // 1000


@pytest.mark.parametrize(
    ("name", "value"), [("key_id", "ABCDE1234"), ("key_id", "ABCDE-1234"), ("team_id", "FGHIJ678901")]
)
def test_an_id_that_cannot_be_apples_names_its_setting(name: str, value: str) -> None:
    """At the start and by check-config, before Apple answers InvalidProviderToken to everything."""
    settings = {"key_file": "k.p8", "key_id": "ABCDE12345", "team_id": "FGHIJ67890", "topic": "com.example.demo"}
    with pytest.raises(ConfigurationError) as caught:
        identify("apps.demo.apns", ApnsSettings(**(settings | {name: value})))  # type: ignore[arg-type]  # texts alone
    assert caught.value.path == f"apps.demo.apns.{name}"
