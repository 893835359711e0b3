"""The lab's cryptography reads the published examples of RFC 8291 and RFC 8292, and what other libraries write."""

import os

import http_ece
import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from waypost.lab.ece import Decrypted, Undecryptable, content_keys, open_message
from waypost.lab.jose import es256_holds, from_base64url, parse_jwt, rs256_holds, to_base64url

UA_PRIVATE = from_base64url("q1dXpw3UpT5VOmu_cf_v6ih07Aems3njxI-JWgLcM94")
UA_PUBLIC = from_base64url("BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4")
AUTH = from_base64url("BTBZMqHH6r4Tts7J_aSIgg")
BODY = from_base64url(
    "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A_"
    "yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN"
)
VAPID_JWT = (
    "eyJ0eXAiOiJKV1QiLCJhbGciOiJFUzI1NiJ9.eyJhdWQiOiJodHRwczovL3B1c2guZXhhbXBsZS5uZXQiLCJleHAiOjE0NTM1MjM3NjgsInN1YiI6"
    "Im1haWx0bzpwdXNoQGV4YW1wbGUuY29tIn0.i3CYb7t4xfxCDquptFOepC9GAu_HLGkMlMuCGSK2rpiUfnK9ojFwDXb1JrErtmysazNjjvW2L9OkSS"
    "HzvoD1oA"
)
VAPID_KEY = "BA1Hxzyi1RUM1b5wjxsn7nGxAszw2u61m164i3MrAIxHF6YK5h4SDYic-dRuU_RCPCfA5aq9ojSwk5Y2EmClBPs"


def browser_key() -> ec.EllipticCurvePrivateKey:
    return ec.derive_private_key(int.from_bytes(UA_PRIVATE), ec.SECP256R1())


def test_the_example_of_rfc_8291_opens() -> None:
    opened = open_message(BODY, browser_key(), UA_PUBLIC, AUTH)
    assert isinstance(opened, Decrypted)
    assert opened.plaintext == b"When I grow up, I want to be a watermelon"
    assert opened.sender_key == BODY[21:86]


def test_the_keys_of_rfc_8291_appendix_a() -> None:
    shared = from_base64url("kyrL1jIIOHEzg3sM2ZWRHDRB62YACZhhSlknJ672kSs")
    key, nonce = content_keys(shared, AUTH, UA_PUBLIC, BODY[21:86], BODY[:16])
    assert (to_base64url(key), to_base64url(nonce)) == ("oIhVW04MRdy2XN9CiKLxTg", "4h_95klXJ5E_qnoN")


@pytest.mark.parametrize("size", [1, 100, 3993])
def test_what_http_ece_writes_opens(size: int) -> None:
    text = os.urandom(size)
    sealed = http_ece.encrypt(
        text, private_key=ec.generate_private_key(ec.SECP256R1()), salt=os.urandom(16), dh=UA_PUBLIC, auth_secret=AUTH,
        version="aes128gcm",
    )  # fmt: skip
    opened = open_message(sealed, browser_key(), UA_PUBLIC, AUTH)
    assert isinstance(opened, Decrypted)
    assert opened.plaintext == text


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (BODY[:86], "shorter than"),
        (BODY[:16] + (17).to_bytes(4) + BODY[20:], "more than one record"),
        (BODY[:21] + b"\x02" + BODY[22:], "uncompressed"),
        (BODY[:22] + bytes(64) + BODY[86:], "on the curve"),
        (BODY[:-1] + b"\0", "authentication tag"),
    ],
)
def test_broken_messages_say_which_rule_they_break(body: bytes, why: str) -> None:
    opened = open_message(body, browser_key(), UA_PUBLIC, AUTH)
    assert isinstance(opened, Undecryptable)
    assert why in opened.why


def test_the_example_of_rfc_8292_verifies() -> None:
    parsed = parse_jwt(VAPID_JWT)
    key = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), from_base64url(VAPID_KEY))
    assert parsed is not None
    assert es256_holds(parsed, key)
    assert parsed.claims == {
        "aud": "https://push.example.net", "exp": 1453523768, "sub": "mailto:push@example.com"
    }  # fmt: skip


def test_what_pyjwt_signs_verifies_and_a_changed_claim_does_not() -> None:
    elliptic, other = ec.generate_private_key(ec.SECP256R1()), rsa.generate_private_key(65537, 2048)
    es256, rs256 = (
        parse_jwt(jwt.encode({"a": 1}, key, algorithm=name)) for key, name in ((elliptic, "ES256"), (other, "RS256"))
    )
    assert es256 is not None
    assert rs256 is not None
    assert es256_holds(es256, elliptic.public_key())
    assert rs256_holds(rs256, other.public_key())
    assert not rs256_holds(es256, other.public_key())
    changed = type(es256)(es256.header, es256.claims, es256.signed + b"x", es256.signature)
    assert not es256_holds(changed, elliptic.public_key())


@pytest.mark.parametrize("text", ["", "a", "a.b", "a.b.c", "e30.e30.=", "e30.bnVsbA.e30", "é.e30.e30"])
def test_what_is_no_jwt_is_none(text: str) -> None:
    assert parse_jwt(text) is None


def test_keys_are_written_as_pkcs8() -> None:
    from waypost.lab.credentials import pem

    written = pem(ec.generate_private_key(ec.SECP256R1()))
    assert written.startswith(b"-----BEGIN PRIVATE KEY-----")
    read = serialization.load_pem_private_key(written, None)
    assert isinstance(read, ec.EllipticCurvePrivateKey)
