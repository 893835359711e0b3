"""The key of a service account: one that cannot sign is found out when it is read."""

from __future__ import annotations

import json
from base64 import b64encode
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
    """The settings of an account whose key has these *numbers*, some of them *changed* in its file."""
    key = numbers.private_key().private_bytes(Encoding.DER, PrivateFormat.TraditionalOpenSSL, NoEncryption())
    for name, value in changed.items():
        length = (getattr(numbers, name).bit_length() + 7) // 8
        key = key.replace(getattr(numbers, name).to_bytes(length), value.to_bytes(length))
    pem = f"-----BEGIN RSA PRIVATE KEY-----\n{b64encode(key).decode()}\n-----END RSA PRIVATE KEY-----\n"
    file = folder / "fcm.json"
    file.write_text(json.dumps({"project_id": "p", "client_email": "e", "private_key": pem}))
    return FcmSettings(service_account_file=str(file))


def test_a_sound_key_signs(tmp_path: Path, numbers: rsa.RSAPrivateNumbers) -> None:
    read = read_service_account("apps.demo.fcm", account(tmp_path, numbers))
    assert read.assertion(Instant(0)).count(".") == 2


@pytest.mark.parametrize("damaged", [("d", "dmp1"), ("p",), ("q",), ("d",), ("dmp1",), ("dmq1",), ("iqmp",)])
def test_a_damaged_key_is_found_out(tmp_path: Path, numbers: rsa.RSAPrivateNumbers, damaged: tuple[str, ...]) -> None:
    """Its numbers are not those of one key, whichever of them it is."""
    settings = account(tmp_path, numbers, **{name: getattr(numbers, name) ^ 4 for name in damaged})
    with pytest.raises(ConfigurationError) as caught:
        read_service_account("apps.demo.fcm", settings)
    assert (caught.value.path, "damaged" in str(caught.value)) == ("apps.demo.fcm.service_account_file", True)
