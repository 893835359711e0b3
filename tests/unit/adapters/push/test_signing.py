"""A signing key is read, or refused with its setting's name; what it signs, another library verifies."""

from __future__ import annotations

from pathlib import Path

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from tests.shows import shows
from waypost.channels.push.signing import read_p256, signed_es256
from waypost.domain.errors import ConfigurationError

KEY = ec.generate_private_key(ec.SECP256R1())
SETTING = "apps.demo.apns.key_file"


@pytest.mark.parametrize("form", [PrivateFormat.PKCS8, PrivateFormat.TraditionalOpenSSL])
def test_both_forms_of_key_file_are_read(tmp_path: Path, form: PrivateFormat) -> None:
    file = tmp_path / "AuthKey.p8"
    file.write_bytes(KEY.private_bytes(Encoding.PEM, form, NoEncryption()))
    assert read_p256(SETTING, str(file)).private_numbers() == KEY.private_numbers()


def pem(key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


@shows("S1-102")
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
        read_p256(SETTING, str(file))
    assert caught.value.path == SETTING


def test_the_same_content_is_signed_the_same_and_another_library_verifies_it() -> None:
    token = signed_es256(KEY, {"kid": "k1"}, {"iss": "team"})
    assert token == signed_es256(KEY, {"kid": "k1"}, {"iss": "team"})
    assert jwt.get_unverified_header(token) == {"alg": "ES256", "kid": "k1"}
    assert jwt.decode(token, KEY.public_key(), algorithms=["ES256"]) == {"iss": "team"}
