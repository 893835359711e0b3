"""Provider tokens are what Apple asks for and live 50 minutes."""

from __future__ import annotations

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from tests.unit.adapters.deliveries import NOW
from waypost.adapters.apns.credentials import LIFETIME_MS, ProviderTokens, identify
from waypost.adapters.apns.settings import ApnsSettings
from waypost.domain.errors import ConfigurationError
from waypost.domain.time import HOUR_MS, MINUTE_MS, Instant, later

KEY = ec.generate_private_key(ec.SECP256R1())
SLOT = Instant(NOW - NOW % LIFETIME_MS)


def tokens() -> ProviderTokens:
    return ProviderTokens(KEY, "ABCDE12345", "FGHIJ67890")


def test_a_provider_token_is_what_apple_describes_and_another_library_verifies_it() -> None:
    token = tokens().at(NOW)
    assert jwt.get_unverified_header(token) == {"alg": "ES256", "kid": "ABCDE12345"}
    claims = jwt.decode(token, KEY.public_key(), algorithms=["ES256"], options={"verify_iat": False})
    assert claims == {"iss": "FGHIJ67890", "iat": SLOT // 1000}


def test_all_processes_with_one_key_present_one_token() -> None:
    assert tokens().at(NOW) == tokens().at(later(SLOT, LIFETIME_MS - 1))


def test_a_token_is_signed_once_and_renewed_after_50_minutes() -> None:
    ours = tokens()
    first = ours.at(SLOT)
    assert ours.at(later(SLOT, LIFETIME_MS - 1)) is first
    second = ours.at(later(SLOT, LIFETIME_MS))
    assert second != first
    assert ours.at(later(SLOT, LIFETIME_MS + MINUTE_MS)) is second


def test_a_refused_token_is_renewed_at_most_every_20_minutes() -> None:
    ours = tokens()
    first = ours.at(later(SLOT, 30 * MINUTE_MS))
    renewed = ours.renew(first, later(SLOT, 30 * MINUTE_MS))
    assert renewed != first
    assert ours.renew(first, later(SLOT, 31 * MINUTE_MS)) is renewed
    assert ours.renew(renewed, later(SLOT, 31 * MINUTE_MS)) is renewed
    assert ours.at(later(SLOT, LIFETIME_MS - 1)) is renewed


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
