"""The published vectors of RFC 8291, and other people's library reading what we encrypt."""

from __future__ import annotations

import hmac
from base64 import urlsafe_b64decode

import http_ece
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from hypothesis import given
from hypothesis import strategies as st

from waypost.channels.push.encryption import PLAINTEXT_LIMIT_BYTES, InvalidKeys, SenderKeys, encrypt, mac, new_salt
from waypost.domain.device import SubscriptionKeys


def octets(text: str) -> bytes:
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))


# RFC 8291 section 5 and appendix A
PLAINTEXT = b"When I grow up, I want to be a watermelon"
AS_PRIVATE = octets("yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw")
UA_PRIVATE = octets("q1dXpw3UpT5VOmu_cf_v6ih07Aems3njxI-JWgLcM94")
UA_PUBLIC = octets("BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4")
AUTH_SECRET = octets("BTBZMqHH6r4Tts7J_aSIgg")
SALT = octets("DGv6ra1nlYgDCS1FRnbzlw")
BODY = octets(
    "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl"
    "7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN"
)
KEYS = SubscriptionKeys(p256dh=UA_PUBLIC, auth=AUTH_SECRET)


def private_key(scalar: bytes) -> ec.EllipticCurvePrivateKey:
    return ec.derive_private_key(int.from_bytes(scalar, "big"), ec.SECP256R1())


def sealed(plaintext: bytes, own: ec.EllipticCurvePrivateKey | None = None) -> bytes:
    """For the browser of the vectors."""
    return encrypt(plaintext, KEYS, own or SenderKeys(reuse_s=0).next(0.0), new_salt())


def test_the_example_of_the_rfc_comes_out_octet_for_octet() -> None:
    assert encrypt(PLAINTEXT, KEYS, private_key(AS_PRIVATE), SALT) == BODY
    assert len(BODY) == 144


@given(st.binary(max_size=64), st.binary(max_size=200))
def test_the_mac_is_that_of_the_standard_library(key: bytes, message: bytes) -> None:
    assert mac(key, message) == hmac.digest(key, message, "sha256")


@given(st.binary(max_size=PLAINTEXT_LIMIT_BYTES))
def test_another_library_reads_what_we_encrypt(plaintext: bytes) -> None:
    body = sealed(plaintext)
    assert len(body) == len(plaintext) + 103
    read = http_ece.decrypt(body, private_key=private_key(UA_PRIVATE), auth_secret=AUTH_SECRET, version="aes128gcm")
    assert read == plaintext


def test_the_largest_plaintext_fills_what_every_push_service_must_take() -> None:
    assert len(sealed(b"x" * PLAINTEXT_LIMIT_BYTES)) == 4096


def test_key_pair_and_salt_are_new_for_each_message() -> None:
    keys = SenderKeys(reuse_s=0)
    first, second = sealed(PLAINTEXT, keys.next(1.0)), sealed(PLAINTEXT, keys.next(1.0))
    assert first[:16] != second[:16]
    assert first[21:86] != second[21:86]


def test_salts_are_drawn_many_at_once_and_given_once() -> None:
    salts = [new_salt() for _ in range(1_000)]
    assert len(set(salts)) == 1_000
    assert {len(each) for each in salts} == {16}


def test_a_key_pair_is_used_for_an_hour_where_the_setting_says_so_and_the_salt_never_again() -> None:
    keys = SenderKeys(reuse_s=3600)
    first, second = sealed(PLAINTEXT, keys.next(1.0)), sealed(PLAINTEXT, keys.next(3600.0))
    assert first[21:86] == second[21:86]
    assert first[:16] != second[:16]
    assert first[86:] != second[86:]
    assert sealed(PLAINTEXT, keys.next(3601.0))[21:86] != first[21:86]
    read = http_ece.decrypt(second, private_key=private_key(UA_PRIVATE), auth_secret=AUTH_SECRET, version="aes128gcm")
    assert read == PLAINTEXT


@pytest.mark.parametrize(
    ("p256dh", "auth"),
    [
        (UA_PUBLIC, b"short"),
        (UA_PUBLIC[:-1], AUTH_SECRET),
        (b"\x04" + b"\x01" * 64, AUTH_SECRET),
        (b"", AUTH_SECRET),
        (private_key(UA_PRIVATE).public_key().public_bytes(Encoding.X962, PublicFormat.CompressedPoint), AUTH_SECRET),
        (
            private_key(UA_PRIVATE).public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo),
            AUTH_SECRET,
        ),
    ],
    ids=["auth of another length", "cut off", "not on the curve", "empty", "compressed", "another encoding"],
)
def test_keys_that_are_no_keys_are_refused(p256dh: bytes, auth: bytes) -> None:
    with pytest.raises(InvalidKeys):
        encrypt(PLAINTEXT, SubscriptionKeys(p256dh=p256dh, auth=auth), private_key(AS_PRIVATE), SALT)
