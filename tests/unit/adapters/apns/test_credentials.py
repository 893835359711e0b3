"""The signing key is read or refused with its setting's name; provider tokens live 50 minutes."""

from __future__ import annotations

from pathlib import Path

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from tests.unit.adapters.deliveries import NOW
from waypost.adapters.apns.credentials import LIFETIME_MS, ProviderTokens, read_key
from waypost.adapters.apns.settings import ApnsSettings
from waypost.domain.errors import ConfigurationError
from waypost.domain.ids import AppId
from waypost.domain.time import HOUR_MS, MINUTE_MS, Instant, later

KEY = ec.generate_private_key(ec.SECP256R1())
SLOT = Instant(NOW - NOW % LIFETIME_MS)


def settings(key_file: Path) -> ApnsSettings:
    return ApnsSettings(key_file=str(key_file), key_id="ABCDE12345", team_id="FGHIJ67890", topic="com.example.demo")


def tokens() -> ProviderTokens:
    return ProviderTokens(KEY, "ABCDE12345", "FGHIJ67890")


@pytest.mark.parametrize("form", [PrivateFormat.PKCS8, PrivateFormat.TraditionalOpenSSL])
def test_both_forms_of_key_file_are_read(tmp_path: Path, form: PrivateFormat) -> None:
    file = tmp_path / "AuthKey.p8"
    file.write_bytes(KEY.private_bytes(Encoding.PEM, form, NoEncryption()))
    assert read_key(AppId("demo"), settings(file)).private_numbers() == KEY.private_numbers()


def pem(key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


@pytest.mark.parametrize(
    "content",
    [
        b"not a key",
        b"",
        pem(rsa.generate_private_key(65537, 2048)),
        pem(ec.generate_private_key(ec.SECP384R1())),
        KEY.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo),
        None,
    ],
    ids=["text", "empty", "rsa", "another curve", "public", "missing"],
)
def test_a_key_that_cannot_sign_names_its_setting(tmp_path: Path, content: bytes | None) -> None:
    file = tmp_path / "AuthKey.p8"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(ConfigurationError) as caught:
        read_key(AppId("demo"), settings(file))
    assert caught.value.path == "apps.demo.apns.key_file"


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
