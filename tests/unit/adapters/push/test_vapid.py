"""Who we say we are (RFC 8292)."""

from __future__ import annotations

from base64 import urlsafe_b64decode
from pathlib import Path

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from tests.unit.adapters.deliveries import NOW
from waypost.channels.push.vapid import Vapid, read_vapid
from waypost.domain.errors import ConfigurationError

KEY = ec.generate_private_key(ec.SECP256R1())
SUBJECT = "mailto:ops@example.com"


def pem(key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def read(file: Path, subject: str = SUBJECT) -> Vapid:
    return read_vapid("apps.demo.webpush", str(file), subject)


def test_the_header_carries_a_token_that_another_library_verifies_with_the_key_beside_it() -> None:
    header = Vapid(KEY, SUBJECT).authorization("https://push.example.net", NOW)
    assert header.startswith("vapid t=")
    token, key = header.removeprefix("vapid t=").split(", k=")
    assert jwt.get_unverified_header(token) == {"typ": "JWT", "alg": "ES256"}
    point = urlsafe_b64decode(key + "=" * (-len(key) % 4))
    public = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), point)
    claims = jwt.decode(
        token, public, algorithms=["ES256"], audience="https://push.example.net", options={"verify_exp": False}
    )
    assert claims == {"aud": "https://push.example.net", "exp": NOW // 1000 + 12 * 3600, "sub": SUBJECT}


@pytest.mark.parametrize("content", [b"text", pem(rsa.generate_private_key(65537, 2048)), None])
def test_a_key_that_cannot_sign_names_its_setting(tmp_path: Path, content: bytes | None) -> None:
    file = tmp_path / "vapid.pem"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(ConfigurationError) as caught:
        read(file)
    assert caught.value.path == "apps.demo.webpush.vapid_private_key_file"


@pytest.mark.parametrize(
    "subject",
    [
        "ops@example.com",
        "mailto:mailto:ops@example.com",
        "mailto:ops@localhost",
        "https://localhost/contact",
        "mailto:ops",
        "https://",
        "http://example.com",
        "mailto:a@b c.com",
    ],
)
def test_a_subject_that_nobody_can_be_reached_at_names_its_setting(tmp_path: Path, subject: str) -> None:
    """Apple refuses every message with such a one."""
    file = tmp_path / "vapid.pem"
    file.write_bytes(pem(KEY))
    with pytest.raises(ConfigurationError) as caught:
        read(file, subject)
    assert caught.value.path == "apps.demo.webpush.subject"


@pytest.mark.parametrize(
    "subject", ["mailto:ops@example.com", "https://example.com", "https://example.com:8443/contact?x=1"]
)
def test_a_subject_may_be_a_mail_address_or_a_page(tmp_path: Path, subject: str) -> None:
    file = tmp_path / "vapid.pem"
    file.write_bytes(pem(KEY))
    assert read(file, subject).public_key
