"""The key of a service account: one that cannot sign is found out when it is read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from waypost.channels.fcm.credentials import read_service_account
from waypost.channels.fcm.settings import FcmSettings
from waypost.domain.errors import ConfigurationError
from waypost.domain.time import Instant


@pytest.fixture(scope="module")
def numbers() -> rsa.RSAPrivateNumbers:
    return rsa.generate_private_key(public_exponent=65_537, key_size=2048).private_numbers()


def account(folder: Path, numbers: rsa.RSAPrivateNumbers, **changed: int) -> FcmSettings:
    """The settings of an account whose key has these *numbers*, some of them *changed*."""
    names = ("p", "q", "d", "dmp1", "dmq1", "iqmp")
    given = {name: getattr(numbers, name) for name in names} | changed
    made = rsa.RSAPrivateNumbers(**given, public_numbers=numbers.public_numbers)
    pem = made.private_key(unsafe_skip_rsa_key_validation=True).private_bytes(
        Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()
    )
    file = folder / "fcm.json"
    file.write_text(json.dumps({"project_id": "p", "client_email": "e", "private_key": pem.decode()}))
    return FcmSettings(service_account_file=str(file))


def test_a_sound_key_signs(tmp_path: Path, numbers: rsa.RSAPrivateNumbers) -> None:
    read = read_service_account("apps.demo.fcm", account(tmp_path, numbers))
    assert read.assertion(Instant(0)).count(".") == 2


def test_a_damaged_key_is_found_out(tmp_path: Path, numbers: rsa.RSAPrivateNumbers) -> None:
    """Its exponents are not those of its modulus; of one alone OpenSSL would make good the damage."""
    settings = account(tmp_path, numbers, d=numbers.d ^ 4, dmp1=numbers.dmp1 ^ 4)
    with pytest.raises(ConfigurationError) as caught:
        read_service_account("apps.demo.fcm", settings)
    assert (caught.value.path, "damaged" in str(caught.value)) == ("apps.demo.fcm.service_account_file", True)
